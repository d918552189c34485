//! A plain walk along frame pointers: the lower limit of the cost, where all code keeps them.

use std::ffi::c_void;

use super::Unwinder;

pub(super) const NAME: &str = "frame pointers";

pub(super) fn load() -> Unwinder {
    Unwinder {
        name: NAME,
        version: || "physical limit: unchecked, only where code keeps frame pointers".to_owned(),
        capture: Ok(bench_capture_frame_pointers),
        needs_frame_pointers: true,
        remembers_addresses: false,
    }
}

unsafe extern "C" {
    fn bench_capture_frame_pointers(buffer: *mut *mut c_void, max: usize) -> usize;
}
