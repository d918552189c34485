//! Hooks that count calls, in libraries that are bound in each way.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::MutexGuard;
use std::sync::atomic::AtomicUsize;
pub(super) use std::sync::atomic::Ordering;

pub(super) use stackweave_testkit::fixtures::{ALLOCATING, ALLOCATING_LATER};
use stackweave_testkit::fixtures::{ALLOCATING_FINDER, ALLOCATING_NESTED, ALLOCATING_OWN};
use stackweave_testkit::library::Library;

use super::*;

/// The size of the tests' own blocks, because other code allocates, too.
const OURS: usize = 54_321;

static MALLOC: AtomicUsize = AtomicUsize::new(0);
static CALLOC: AtomicUsize = AtomicUsize::new(0);
static REALLOC: AtomicUsize = AtomicUsize::new(0);
static FREE: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The calls of this thread.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

fn note(size: usize) {
    refresh_if_needed();
    COUNT.fetch_add(usize::from(size == OURS), Ordering::Relaxed);
    OWN.set(OWN.get() + usize::from(size == OURS));
}

unsafe extern "C" fn malloc_hook(size: usize) -> *mut c_void {
    note(size);
    // SAFETY: the original, which is known before a hook is called.
    unsafe {
        let original: unsafe extern "C" fn(usize) -> *mut c_void = std::mem::transmute(MALLOC.load(Ordering::Relaxed));
        original(size)
    }
}

unsafe extern "C" fn calloc_hook(count: usize, size: usize) -> *mut c_void {
    note(count * size);
    // SAFETY: as above.
    unsafe {
        let original: unsafe extern "C" fn(usize, usize) -> *mut c_void =
            std::mem::transmute(CALLOC.load(Ordering::Relaxed));
        original(count, size)
    }
}

unsafe extern "C" fn realloc_hook(block: *mut c_void, size: usize) -> *mut c_void {
    note(size);
    // SAFETY: as above.
    unsafe {
        let original: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void =
            std::mem::transmute(REALLOC.load(Ordering::Relaxed));
        original(block, size)
    }
}

unsafe extern "C" fn free_hook(block: *mut c_void) {
    refresh_if_needed();
    // SAFETY: as above.
    unsafe {
        let original: unsafe extern "C" fn(*mut c_void) = std::mem::transmute(FREE.load(Ordering::Relaxed));
        original(block);
    }
}

pub(super) fn functions() -> &'static [HookFunction] {
    Box::leak(Box::new([
        HookFunction { name: c"malloc", hook: malloc_hook as *const () as usize, original: &MALLOC },
        HookFunction { name: c"calloc", hook: calloc_hook as *const () as usize, original: &CALLOC },
        HookFunction { name: c"realloc", hook: realloc_hook as *const () as usize, original: &REALLOC },
        HookFunction { name: c"free", hook: free_hook as *const () as usize, original: &FREE },
        HookFunction { name: c"no_such_function_anywhere", hook: 1, original: &COUNT },
    ]))
}

/// Gives one test at a time the use of the slots.
pub(super) struct ExclusiveSlots(#[expect(dead_code, reason = "held until it is dropped")] MutexGuard<'static, ()>);

impl ExclusiveSlots {
    pub(super) fn new() -> Self {
        Self(crate::tests::recorded::exclusive())
    }
}

impl Drop for ExclusiveSlots {
    fn drop(&mut self) {
        remove(functions());
    }
}

/// A library of `allocating.c`.
pub(super) struct Allocating(Library);

// SAFETY: its functions, and those of the loader on its handle, may be called by all threads.
unsafe impl Sync for Allocating {}

macro_rules! function {
    ($library:expr, $name:literal, $type:ty) => {{
        let symbol = $library.0.symbol($name);
        assert!(!symbol.is_null(), $name);
        std::mem::transmute::<*mut c_void, $type>(symbol)
    }};
}

impl Allocating {
    pub(super) fn open(path: &str) -> Self {
        Self(Library::open(path).unwrap())
    }

    pub(super) fn release(&self, block: *mut c_void) {
        // SAFETY: a block of the fixture.
        unsafe { function!(self, "sw_release", unsafe extern "C" fn(*mut c_void))(block) };
    }

    /// Returns how many calls of this library reach the hooks, of one call in each way.
    pub(super) fn counted(&self) -> usize {
        OWN.set(0);
        // SAFETY: the fixture's functions.
        unsafe {
            for name in ["sw_allocate", "sw_allocate_by_table", "sw_allocate_by_constant_table"] {
                let symbol = self.0.symbol(name);
                let allocate: unsafe extern "C" fn(usize) -> *mut c_void = std::mem::transmute(symbol);
                self.release(allocate(OURS));
            }
            let zeroed = function!(self, "sw_allocate_zeroed", unsafe extern "C" fn(usize, usize) -> *mut c_void);
            let block = zeroed(1, OURS);
            let again = function!(self, "sw_reallocate", unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void);
            self.release(again(block, OURS));
        }
        OWN.get()
    }

    /// Allocates a block.
    pub(super) fn allocate(&self) -> *mut c_void {
        // SAFETY: the fixture's function.
        unsafe { function!(self, "sw_allocate", unsafe extern "C" fn(usize) -> *mut c_void)(OURS) }
    }

    /// Returns how many calls by this thread reach the hooks, while other threads call them, too.
    pub(super) fn counted_alone(&self) -> usize {
        OWN.set(0);
        self.release(self.allocate());
        OWN.get()
    }

    /// Loads another library by this library's own calls of the loader.
    pub(super) fn load(&self, name: &str, mode: c_int) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the fixture's function.
        unsafe {
            function!(self, "sw_open", unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void)(name.as_ptr(), mode)
        }
    }

    fn find(&self, handle: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: the fixture's function.
        unsafe {
            function!(self, "sw_find", unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void)(
                handle,
                name.as_ptr(),
            )
        }
    }

    pub(super) fn close(&self, handle: *mut c_void) {
        // SAFETY: the fixture's function.
        let result = unsafe { function!(self, "sw_close", unsafe extern "C" fn(*mut c_void) -> c_int)(handle) };
        assert_eq!(result, 0);
    }

    /// Allocates by the function `sw_allocate` of the library of `handle`, which this library looks up.
    pub(super) fn allocate_in(&self, handle: *mut c_void) -> *mut c_void {
        let found = self.find(handle, c"sw_allocate");
        // SAFETY: the fixture's function.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize) -> *mut c_void>(found)(OURS) }
    }
}

pub(super) const ALL: usize = 5;

/// Returns the addresses and words of a module's data segments.
fn words(path: &str) -> Vec<(u64, u64)> {
    let mut words = Vec::new();
    for line in mappings(path) {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).unwrap());
        if rest.starts_with("rw") || rest.starts_with("r--") {
            words.extend((start..end).step_by(8).map(|at| {
                // SAFETY: a readable page of a loaded module.
                (at, unsafe { std::ptr::with_exposed_provenance::<u64>(at as usize).read_volatile() })
            }));
        }
    }
    words
}

fn mappings(path: &str) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let lines: Vec<String> = maps.lines().filter(|line| line.ends_with(path)).map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{path}");
    lines
}

#[test]
fn calls_are_hooked_however_they_are_bound_and_slots_are_restored() {
    let _exclusive = ExclusiveSlots::new();
    for (name, path) in ALLOCATING {
        let library = Allocating::open(path);
        for is_bound in [false, true] {
            let (before, pages) = (words(path), mappings(path));
            install(functions()).unwrap();
            assert_eq!(mappings(path), pages, "{name}");
            let hooked: Vec<u64> =
                words(path).iter().zip(&before).filter(|(now, then)| now != then).map(|(now, _)| now.1).collect();
            let hooks = [malloc_hook as *const () as u64, free_hook as *const () as u64];
            assert!(
                hooks.iter().all(|hook| hooked.iter().filter(|word| *word == hook).count() == 3),
                "{name} {hooked:x?}"
            );
            assert_eq!(library.counted(), ALL, "{name}");
            remove(functions());
            assert_eq!(mappings(path), pages, "{name}");
            let definitions =
                [&MALLOC, &CALLOC, &REALLOC, &FREE].map(|original| original.load(Ordering::Relaxed) as u64);
            for (now, then) in words(path).iter().zip(&before) {
                let was_bound_meanwhile = !is_bound && then.1 != now.1 && is_bound_by_loader(now.1, &definitions);
                assert!(now == then || was_bound_meanwhile, "{name}: {now:x?} was {then:x?}");
            }
            assert_eq!(library.counted(), 0, "{name}");
        }
    }
}

/// Returns whether a slot holds this word after the loader has bound it by its first call.
fn is_bound_by_loader(word: u64, definitions: &[u64]) -> bool {
    let functions = [c"dlopen", c"dlsym"].map(|name| {
        // SAFETY: dlsym with a literal name.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.addr() as u64
    });
    definitions.contains(&word) || functions.contains(&word)
}

#[test]
fn a_library_that_is_loaded_later_is_hooked_when_a_function_of_it_is_looked_up() {
    let _exclusive = ExclusiveSlots::new();
    let loading = Allocating::open(ALLOCATING[0].1);
    install(functions()).unwrap();
    assert_eq!(install(functions()), Err(InterposeError::AlreadyInstalled));
    let (before, slots) = (COUNT.load(Ordering::Relaxed), stats().slots);
    for round in 1..=3 {
        // At the same address each time, if the kernel chooses so.
        let handle = loading.load(ALLOCATING[3].1, libc::RTLD_NOW);
        let block = loading.allocate_in(handle);
        assert_eq!(COUNT.load(Ordering::Relaxed), before + round);
        assert!(stats().slots > slots);
        loading.release(block);
        loading.close(handle);
    }
}

#[test]
fn constructors_are_hooked_once_anything_is_called_through_a_slot() {
    let _exclusive = ExclusiveSlots::new();
    let plain = Allocating::open(ALLOCATING_LATER);
    let pages = protections(ALLOCATING_LATER);
    drop(plain);
    install(functions()).unwrap();
    for _ in 0..3 {
        let before = COUNT.load(Ordering::Relaxed);
        let library = Allocating::open(ALLOCATING_LATER);
        assert_eq!(COUNT.load(Ordering::Relaxed), before + 1);
        assert_ne!(protections(ALLOCATING_LATER), pages, "the loader might still need to write them");
        assert_eq!(library.counted(), ALL);
        assert_eq!(protections(ALLOCATING_LATER), pages, "the first call afterwards restores them");
    }
}

/// Returns the protections of a module's pages.
pub(super) fn protections(path: &str) -> Vec<String> {
    mappings(path).iter().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn libraries_are_found_by_the_search_paths_of_their_caller() {
    let _exclusive = ExclusiveSlots::new();
    let finder = Allocating::open(ALLOCATING_FINDER);
    install(functions()).unwrap();
    assert_eq!(finder.counted(), ALL);
    for name in ["liballoc_nested.so", "$ORIGIN/nested/liballoc_nested.so"] {
        let handle = finder.load(name, libc::RTLD_LAZY);
        assert!(!handle.is_null(), "{name}");
        assert!(!mappings(ALLOCATING_NESTED).is_empty());
        let before = COUNT.load(Ordering::Relaxed);
        finder.release(finder.allocate_in(handle));
        assert_eq!(COUNT.load(Ordering::Relaxed), before + 1, "{name}");
        finder.close(handle);
    }
    let other = Allocating::open(ALLOCATING[0].1);
    assert!(other.load("liballoc_nested.so", libc::RTLD_LAZY).is_null(), "it has no such path");
}

#[test]
fn a_library_with_its_own_allocator_keeps_it() {
    let _exclusive = ExclusiveSlots::new();
    let loading = Allocating::open(ALLOCATING[0].1);
    install(functions()).unwrap();
    for path in ALLOCATING_OWN {
        // It prefers its own definitions, because it is loaded so.
        let handle = loading.load(path, libc::RTLD_LAZY | libc::RTLD_DEEPBIND);
        let is_own: unsafe extern "C" fn(*mut c_void) -> c_int =
            // SAFETY: the fixture's function.
            unsafe { std::mem::transmute(loading.find(handle, c"sw_is_own")) };
        let before = COUNT.load(Ordering::Relaxed);
        for _ in 0..2 {
            let block = loading.allocate_in(handle);
            // SAFETY: the function only compares.
            assert_eq!(unsafe { is_own(block) }, 1, "{path}");
            recheck();
        }
        assert_eq!(COUNT.load(Ordering::Relaxed), before, "{path}");
        loading.close(handle);
    }
}

#[test]
fn a_slot_that_the_loader_has_bound_meanwhile_is_hooked_again() {
    let _exclusive = ExclusiveSlots::new();
    let (_, path) = ALLOCATING[1];
    let library = Allocating::open(path);
    install(functions()).unwrap();
    let hook = malloc_hook as *const () as u64;
    for round in 0..3 {
        let definition = MALLOC.load(Ordering::Relaxed) as u64;
        let slots: Vec<u64> = words(path).iter().filter(|word| word.1 == hook).map(|word| word.0).collect();
        let writable: Vec<u64> = slots.into_iter().filter(|slot| is_writable(path, *slot)).collect();
        assert!(!writable.is_empty());
        for slot in &writable {
            // SAFETY: a slot on a page that is writable for the loader.
            unsafe { std::ptr::with_exposed_provenance_mut::<u64>(*slot as usize).write_volatile(definition) };
        }
        assert!(library.counted() < ALL);
        recheck();
        assert_eq!(library.counted(), ALL, "round {round}");
    }
}

fn is_writable(path: &str, address: u64) -> bool {
    mappings(path).iter().any(|line| {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).unwrap());
        rest.starts_with("rw") && (start..end).contains(&address)
    })
}

#[test]
fn a_slot_that_another_tool_has_changed_stays() {
    unsafe extern "C" fn another(_: usize) -> *mut c_void {
        std::ptr::dangling_mut::<u64>().cast()
    }
    let _exclusive = ExclusiveSlots::new();
    let (_, path) = ALLOCATING[3];
    let library = Allocating::open(path);
    install(functions()).unwrap();
    let foreign = stats().foreign_slots;
    let hook = malloc_hook as *const () as u64;
    let slots: Vec<u64> = words(path).iter().filter(|word| word.1 == hook).map(|word| word.0).collect();
    let put = |value: u64| {
        for slot in &slots {
            // SAFETY: slots of a library whose pages are all writable.
            unsafe { std::ptr::with_exposed_provenance_mut::<u64>(*slot as usize).write_volatile(value) };
        }
    };
    remove(functions());
    put(another as *const () as u64);
    install(functions()).unwrap();
    // Two of the three are variables, which the library itself may have changed.
    assert_eq!((slots.len(), stats().foreign_slots), (3, foreign + 1));
    assert_eq!(library.allocate().addr(), align_of::<u64>());
    remove(functions());
    assert_eq!(library.allocate().addr(), align_of::<u64>());
    put(MALLOC.load(Ordering::Relaxed) as u64);
}

#[test]
fn hooks_are_kept_for_the_next_recorder_while_a_guard_wants_them() {
    let _exclusive = ExclusiveSlots::new();
    let library = Allocating::open(ALLOCATING[0].1);
    let kept = KeptHooks::begin();
    for _ in 0..2 {
        install(functions()).unwrap();
        assert_eq!(install(functions()), Err(InterposeError::AlreadyInstalled), "they are in use");
        assert_eq!(library.counted(), ALL);
        remove(functions());
        assert_eq!(library.counted(), ALL, "they stay");
    }
    let later = Allocating::open(ALLOCATING[1].1);
    install(functions()).unwrap();
    assert_eq!(later.counted(), ALL, "a library that was loaded in between is hooked");
    remove(functions());
    drop(kept);
    assert_eq!((library.counted(), later.counted()), (0, 0));
    install(functions()).unwrap();
    let kept = KeptHooks::begin();
    drop(kept);
    assert_eq!(library.counted(), ALL, "a running recorder keeps its hooks");
    remove(functions());
    assert_eq!(library.counted(), 0);
}

#[test]
fn kept_hooks_of_other_functions_are_not_reused() {
    let _exclusive = ExclusiveSlots::new();
    let library = Allocating::open(ALLOCATING[0].1);
    let kept = KeptHooks::begin();
    install(functions()).unwrap();
    remove(functions());
    install(&functions()[..1]).unwrap();
    let counted = library.counted();
    assert!(counted != 0 && counted != ALL, "the first function only: {counted}");
    remove(&functions()[..1]);
    drop(kept);
    assert_eq!(library.counted(), 0);
}

#[test]
fn a_walk_inside_a_walk_is_skipped() {
    unsafe extern "C" fn allocate(_: *mut libc::dl_phdr_info, _: usize, library: *mut c_void) -> c_int {
        // SAFETY: what is passed below.
        let library = unsafe { &*library.cast::<Allocating>() };
        assert_eq!(library.counted(), ALL);
        1
    }
    let _exclusive = ExclusiveSlots::new();
    let library = Allocating::open(ALLOCATING[0].1);
    install(functions()).unwrap();
    // A library was loaded that has not been noticed yet.
    let later = Allocating::open(ALLOCATING[1].1);
    // SAFETY: the callback fits.
    unsafe { libc::dl_iterate_phdr(Some(allocate), (&raw const library).cast_mut().cast()) };
    assert_eq!(library.counted(), ALL);
    assert_eq!(later.counted(), ALL);
}
