//! Allocators of other code: one before that of a domain, which counts, and one before that of arenas.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::allocators::is_in_event;

#[derive(Clone, Copy)]
#[repr(C)]
struct OtherAllocator {
    context: *mut c_void,
    malloc: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    calloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    realloc: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void>,
    free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Arenas {
    context: *mut c_void,
    allocate: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize)>,
}

// SAFETY: functions and their context, which the interpreter calls from every thread.
unsafe impl Send for OtherAllocator {}
// SAFETY: as above.
unsafe impl Sync for OtherAllocator {}
// SAFETY: as above.
unsafe impl Send for Arenas {}

const NONE: OtherAllocator =
    OtherAllocator { context: std::ptr::null_mut(), malloc: None, calloc: None, realloc: None, free: None };
static PREVIOUS: Mutex<[OtherAllocator; 3]> = Mutex::new([NONE; 3]);
static PREVIOUS_ARENAS: Mutex<Option<Arenas>> = Mutex::new(None);

static CALLS: AtomicU64 = AtomicU64::new(0);
static CALLS_IN_EVENTS: AtomicU64 = AtomicU64::new(0);
static ARENAS: AtomicU64 = AtomicU64::new(0);
static ARENAS_IN_EVENTS: AtomicU64 = AtomicU64::new(0);

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!address.is_null(), "{name:?}");
    address
}

fn count() {
    CALLS.fetch_add(1, Ordering::Relaxed);
    CALLS_IN_EVENTS.fetch_add(u64::from(is_in_event()), Ordering::Relaxed);
}

/// Returns the functions before which ours are installed: a copy, because several threads may be in them.
unsafe fn previous(context: *mut c_void) -> OtherAllocator {
    // SAFETY: the context is one of those below, which is never freed.
    unsafe { *context.cast::<OtherAllocator>() }
}

unsafe extern "C" fn malloc(context: *mut c_void, size: usize) -> *mut c_void {
    count();
    // SAFETY: passed on unchanged.
    unsafe { previous(context).malloc.expect("it is there")(previous(context).context, size) }
}

unsafe extern "C" fn calloc(context: *mut c_void, number: usize, size: usize) -> *mut c_void {
    count();
    // SAFETY: passed on unchanged.
    unsafe { previous(context).calloc.expect("it is there")(previous(context).context, number, size) }
}

unsafe extern "C" fn realloc(context: *mut c_void, old: *mut c_void, size: usize) -> *mut c_void {
    count();
    // SAFETY: passed on unchanged.
    unsafe { previous(context).realloc.expect("it is there")(previous(context).context, old, size) }
}

unsafe extern "C" fn free(context: *mut c_void, address: *mut c_void) {
    // SAFETY: passed on unchanged.
    unsafe { previous(context).free.expect("it is there")(previous(context).context, address) }
}

/// Installs an allocator before that of a domain, or restores the one that it found, whatever is installed now.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_other_allocator(domain: c_int, is_on: bool) {
    let slot = usize::try_from(domain).expect("a domain");
    let mut before = PREVIOUS.lock().expect("no thread panics");
    // SAFETY: the signatures are those of the headers, and the script holds the GIL.
    unsafe {
        let get: unsafe extern "C" fn(c_int, *mut OtherAllocator) = std::mem::transmute(symbol(c"PyMem_GetAllocator"));
        let set: unsafe extern "C" fn(c_int, *mut OtherAllocator) = std::mem::transmute(symbol(c"PyMem_SetAllocator"));
        if is_on {
            get(domain, &raw mut before[slot]);
            let context = std::ptr::from_mut(Box::leak(Box::new(before[slot]))).cast();
            let mut ours = OtherAllocator {
                context,
                malloc: Some(malloc),
                calloc: Some(calloc),
                realloc: Some(realloc),
                free: Some(free),
            };
            set(domain, &raw mut ours);
        } else {
            set(domain, &raw mut before[slot]);
        }
    }
}

unsafe extern "C" fn allocate_arena(_: *mut c_void, size: usize) -> *mut c_void {
    ARENAS.fetch_add(1, Ordering::Relaxed);
    ARENAS_IN_EVENTS.fetch_add(u64::from(is_in_event()), Ordering::Relaxed);
    let before = PREVIOUS_ARENAS.lock().expect("no thread panics").expect("it is there");
    // SAFETY: passed on unchanged.
    unsafe { before.allocate.expect("it is there")(before.context, size) }
}

unsafe extern "C" fn free_arena(_: *mut c_void, arena: *mut c_void, size: usize) {
    let before = PREVIOUS_ARENAS.lock().expect("no thread panics").expect("it is there");
    // SAFETY: passed on unchanged.
    unsafe { before.free.expect("it is there")(before.context, arena, size) }
}

/// Installs an allocator before that of arenas, forever.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_other_arenas() {
    let mut before = Arenas { context: std::ptr::null_mut(), allocate: None, free: None };
    // SAFETY: the signatures are those of the headers, and the script holds the GIL.
    unsafe {
        let get: unsafe extern "C" fn(*mut Arenas) = std::mem::transmute(symbol(c"PyObject_GetArenaAllocator"));
        let set: unsafe extern "C" fn(*mut Arenas) = std::mem::transmute(symbol(c"PyObject_SetArenaAllocator"));
        get(&raw mut before);
        *PREVIOUS_ARENAS.lock().expect("no thread panics") = Some(before);
        let mut ours = Arenas { context: std::ptr::null_mut(), allocate: Some(allocate_arena), free: Some(free_arena) };
        set(&raw mut ours);
    }
}

/// Returns a count of allocations: 0 by the allocator, 1 those of them in an event, 2 and 3 the same for arenas.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_other_calls(which: u32) -> u64 {
    let counts = [&CALLS, &CALLS_IN_EVENTS, &ARENAS, &ARENAS_IN_EVENTS];
    counts[which as usize % counts.len()].load(Ordering::Relaxed)
}
