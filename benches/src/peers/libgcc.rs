//! libgcc's `_Unwind_Backtrace`: complete but slow, and therefore also the reference for all others.

use std::ffi::{c_int, c_void};

use super::{Unwinder, shared_library};

pub(super) const NAME: &str = "libgcc";

pub(super) fn load() -> Unwinder {
    Unwinder {
        name: NAME,
        version: || {
            format!("{}, _Unwind_Backtrace", shared_library::describe(_Unwind_Backtrace as *const c_void, "libgcc-s1"))
        },
        capture: Ok(capture),
        needs_frame_pointers: false,
        remembers_addresses: false,
    }
}

type Context = c_void;
const CONTINUE: c_int = 0;
const STOP: c_int = 5;

unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut Context, *mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

struct Output {
    next: *mut *mut c_void,
    end: *mut *mut c_void,
}

pub(crate) unsafe extern "C" fn capture(buffer: *mut *mut c_void, max: usize) -> usize {
    let mut output = Output { next: buffer, end: buffer.wrapping_add(max) };
    // SAFETY: `step` receives the pointer to `output`, which lives until the walk has ended.
    unsafe { _Unwind_Backtrace(step, (&raw mut output).cast()) };
    (output.next.addr() - buffer.addr()) / size_of::<*mut c_void>()
}

extern "C" fn step(context: *mut Context, argument: *mut c_void) -> c_int {
    // SAFETY: `capture` passed a pointer to its `Output`, and nothing else uses it during the walk.
    let output = unsafe { &mut *argument.cast::<Output>() };
    if output.next == output.end {
        return STOP;
    }
    // SAFETY: the context is the one that libgcc passed for this step.
    let address = unsafe { _Unwind_GetIP(context) };
    // SAFETY: `next` is inside the caller's buffer, as it is not yet at its end.
    unsafe { output.next.write(address as *mut c_void) };
    output.next = output.next.wrapping_add(1);
    CONTINUE
}
