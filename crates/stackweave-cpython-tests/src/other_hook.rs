//! A frame evaluation function of other code, such as a compiler of Python code.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

type EvaluateFrame = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, c_int) -> *mut c_void;

static PREVIOUS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static FRAMES: AtomicU64 = AtomicU64::new(0);

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!address.is_null(), "{name:?}");
    address
}

/// # Safety
/// The interpreter calls it.
unsafe extern "C-unwind" fn evaluate(state: *mut c_void, frame: *mut c_void, throw: c_int) -> *mut c_void {
    FRAMES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the previous function takes the same arguments.
    unsafe { std::mem::transmute::<*mut c_void, EvaluateFrame>(PREVIOUS.load(Ordering::Relaxed))(state, frame, throw) }
}

/// Installs the function, or restores the previous one. 3.10 and 3.11 only; the script holds the GIL.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_other_hook(is_on: bool) {
    // SAFETY: the signatures are those of the headers.
    unsafe {
        let interpreter: unsafe extern "C" fn() -> *mut c_void = std::mem::transmute(symbol(c"PyInterpreterState_Get"));
        let get: unsafe extern "C" fn(*mut c_void) -> *mut c_void =
            std::mem::transmute(symbol(c"_PyInterpreterState_GetEvalFrameFunc"));
        let set: unsafe extern "C" fn(*mut c_void, *mut c_void) =
            std::mem::transmute(symbol(c"_PyInterpreterState_SetEvalFrameFunc"));
        if is_on {
            PREVIOUS.store(get(interpreter()), Ordering::Relaxed);
            set(interpreter(), evaluate as *mut c_void);
        } else {
            set(interpreter(), PREVIOUS.load(Ordering::Relaxed));
        }
    }
}

/// Returns how many frames it has run.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_other_frames() -> u64 {
    FRAMES.load(Ordering::Relaxed)
}
