//! Declarations of the C, C++ and assembly fixtures. The sources in `fixtures/` describe what each builds.
#![expect(missing_docs, reason = "the fixtures' own comments say what they do")]

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

/// The callback that a fixture calls when its stack is built.
pub type Callback = extern "C" fn(*mut c_void);
/// A fixture that does nothing but call back.
pub type CallingFixture = unsafe extern "C" fn(Callback, *mut c_void);
/// A fixture that calls nothing.
pub type Leaf = unsafe extern "C" fn(c_long, c_long) -> c_long;

/// The Rust declaration of `struct sw_tree` in `call_tree.c`.
#[repr(C)]
#[derive(Debug)]
pub struct RawTree {
    pub path: *const u8,
    pub length: c_ulong,
    pub depth: c_ulong,
    pub return_addresses: *mut u64,
    pub callback: Callback,
    pub data: *mut c_void,
}

unsafe extern "C" {
    pub fn sw_recurse(depth: c_uint, callback: Callback, data: *mut c_void);
    pub fn sw_recurse_wide(depth: c_uint, callback: Callback, data: *mut c_void);
    pub fn sw_noreturn(callback: Callback, data: *mut c_void);
    pub fn sw_behind_noreturn(callback: Callback, data: *mut c_void);
    pub fn sw_aba_root(through_q: c_int, callback: Callback, data: *mut c_void);
    pub fn sw_aba_p(callback: Callback, data: *mut c_void);
    pub fn sw_aba_q(callback: Callback, data: *mut c_void);
    pub fn sw_swapped_buffers(rounds: c_uint, callback: Callback, data: *mut c_void);
    pub fn sw_sort(callback: Callback, data: *mut c_void) -> c_int;

    pub fn sw_tree_omit(tree: *mut RawTree);
    pub fn sw_tree_keep(tree: *mut RawTree);

    pub fn sw_throw_through(callback: Callback, data: *mut c_void);
    pub fn sw_catch(callback: Callback, data: *mut c_void);
    pub fn sw_terminate(callback: Callback, data: *mut c_void);

    pub fn sw_std_sort(callback: Callback, data: *mut c_void);
    pub fn sw_std_call_once(callback: Callback, data: *mut c_void);
    pub fn sw_std_ostream(callback: Callback, data: *mut c_void);
    pub fn sw_std_thread(callback: Callback, data: *mut c_void);

    pub fn sw_coroutine(
        stack: *mut c_void,
        size: c_ulong,
        depth: c_uint,
        callback: Callback,
        data: *mut c_void,
    ) -> c_int;

    pub fn sw_bare_leaf(a: c_long, b: c_long) -> c_long;
    pub fn sw_bare_busy_leaf(a: c_long, b: c_long) -> c_long;
    pub fn sw_bare_call(callback: Callback, data: *mut c_void);
    pub fn sw_asm_bare(callback: Callback, data: *mut c_void);
    pub fn sw_asm_frame_pointer(callback: Callback, data: *mut c_void);
    pub fn sw_asm_misleading_rbp(callback: Callback, data: *mut c_void);
    pub fn sw_asm_stepped(a: c_long, b: c_long) -> c_long;
    pub fn sw_trapping_leaf(a: c_long, b: c_long) -> c_long;
    pub fn sw_call_leaf(leaf: Leaf, a: c_long) -> c_long;
    pub fn sw_call_caller(caller: CallingFixture, callback: Callback, data: *mut c_void);

    pub fn sw_stepped_frames() -> c_long;
    pub fn sw_with_invalid_rbp(function: unsafe extern "C" fn() -> c_long) -> c_long;
    pub fn sw_trap_on();
    pub fn sw_trap_off();
}

/// `sw_plugin_enter` of `plugin.S`.
pub type PluginEnter = unsafe extern "C" fn(Callback, *mut c_void);
/// `sw_lazy_calls` of `lazy.c`.
pub type LazyCalls = unsafe extern "C" fn(*const c_char) -> c_long;

/// The library of `plugin.S` whose inner frame is larger than its outer frame.
pub const PLUGIN_INNER: &str = env!("SW_PLUGIN_INNER");
/// The same library with the two sizes swapped.
pub const PLUGIN_OUTER: &str = env!("SW_PLUGIN_OUTER");
/// The library of `known_amounts.c`.
pub const KNOWN_AMOUNTS: &str = env!("SW_KNOWN_AMOUNTS");
/// The lazily bound library of `lazy.c`.
pub const LAZY: &str = env!("SW_LAZY");

/// The libraries of `allocating.c`: one for each way in which calls are bound, with its name.
pub const ALLOCATING: [(&str, &str); 6] = [
    ("now", env!("SW_ALLOC_NOW")),
    ("lazy", env!("SW_ALLOC_LAZY")),
    ("ibt", env!("SW_ALLOC_IBT")),
    ("norelro", env!("SW_ALLOC_NORELRO")),
    ("noplt", env!("SW_ALLOC_NOPLT")),
    ("packed", env!("SW_ALLOC_PACKED")),
];
/// The library of `allocating.c` with a constructor that allocates.
pub const ALLOCATING_LATER: &str = env!("SW_ALLOC_LATER");
/// The library of `allocating.c` with its own `malloc`: bound immediately, and bound by the first call.
pub const ALLOCATING_OWN: [&str; 2] = [env!("SW_ALLOC_OWN"), env!("SW_ALLOC_OWN_LAZY")];
/// The library of `allocating.c` that finds libraries in the folder `nested` beside it.
pub const ALLOCATING_FINDER: &str = env!("SW_ALLOC_FINDER");
/// The library of `allocating.c` in that folder.
pub const ALLOCATING_NESTED: &str = env!("SW_ALLOC_NESTED");

/// `counter.c`, for `LD_PRELOAD`.
pub const COUNTER: &str = env!("SW_COUNTER");
/// The library of `workload.cpp`.
pub const WORKLOAD: &str = env!("SW_WORKLOAD");
/// The library of `stress.cpp`.
pub const STRESS: &str = env!("SW_STRESS");

extern "C" fn run_action(data: *mut c_void) {
    // SAFETY: `call_through` passes a pointer to its `action`, which outlives the fixture's run.
    let action = unsafe { &mut *data.cast::<&mut dyn FnMut()>() };
    action();
}

/// Calls a fixture through `enter`, with a callback that runs `action`.
pub fn call_through(mut action: &mut dyn FnMut(), enter: impl FnOnce(Callback, *mut c_void)) {
    enter(run_action, (&raw mut action).cast());
}
