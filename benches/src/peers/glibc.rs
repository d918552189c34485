//! glibc's `backtrace()`.

use std::ffi::{c_int, c_void};

use super::Unwinder;
use crate::machine;

pub(super) const NAME: &str = "glibc";

pub(super) fn load() -> Unwinder {
    Unwinder {
        name: NAME,
        version: || format!("{}, backtrace()", machine::glibc_version()),
        capture: Ok(capture),
        needs_frame_pointers: false,
        remembers_addresses: false,
    }
}

unsafe extern "C" {
    fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
}

unsafe extern "C" fn capture(buffer: *mut *mut c_void, max: usize) -> usize {
    let size = c_int::try_from(max).unwrap_or(c_int::MAX);
    // SAFETY: the caller passes `max` words, and glibc writes at most `size` of them.
    let count = unsafe { backtrace(buffer, size) };
    usize::try_from(count).unwrap_or(0)
}
