//! glibc's `backtrace`.

use std::ffi::{c_int, c_void};

use stackweave_unwind::CodeAddress;

unsafe extern "C" {
    fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
}

/// Fills `frames` with the stack of the function into which this one is inlined.
#[inline(always)]
pub fn capture(frames: &mut [CodeAddress]) -> usize {
    let length = c_int::try_from(frames.len()).unwrap_or(c_int::MAX);
    // SAFETY: `CodeAddress` is one word, a plain address being a return address; `length` words may be written.
    let count = unsafe { backtrace(frames.as_mut_ptr().cast(), length) };
    usize::try_from(count).unwrap_or(0)
}
