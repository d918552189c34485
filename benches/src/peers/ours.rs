//! Stackweave.

use std::ffi::c_void;
use std::slice;

use stackweave_unwind::CodeAddress;

use super::Unwinder;

pub(crate) const NAME: &str = "stackweave";

pub(super) fn load() -> Unwinder {
    Unwinder {
        name: NAME,
        version: || env!("CARGO_PKG_VERSION").to_owned(),
        capture: Ok(capture),
        needs_frame_pointers: false,
        remembers_addresses: true,
    }
}

unsafe extern "C" fn capture(buffer: *mut *mut c_void, max: usize) -> usize {
    // SAFETY: the caller passes `max` initialised words, and a `CodeAddress` is one word that may hold any bits.
    let frames = unsafe { slice::from_raw_parts_mut(buffer.cast::<CodeAddress>(), max) };
    stackweave_unwind::capture(frames, 0).len
}
