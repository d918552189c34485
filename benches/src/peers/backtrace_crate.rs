//! The `backtrace` crate, called without its lock.

use std::ffi::c_void;

use super::{Unwinder, locked_version};

pub(super) const NAME: &str = "backtrace crate";

pub(super) fn load() -> Unwinder {
    Unwinder {
        name: NAME,
        version: || format!("{}, trace_unsynchronized", locked_version("backtrace")),
        capture: Ok(capture),
        needs_frame_pointers: false,
        remembers_addresses: false,
    }
}

unsafe extern "C" fn capture(buffer: *mut *mut c_void, max: usize) -> usize {
    let mut count = 0;
    let step = |frame: &backtrace::Frame| {
        // SAFETY: the caller passes `max` words, and the walk ends when `count` reaches that.
        unsafe { buffer.add(count).write(frame.ip()) };
        count += 1;
        count < max
    };
    // SAFETY: tracing touches no symbol state, which is all that the crate's lock protects on Linux.
    unsafe { backtrace::trace_unsynchronized(step) };
    count
}
