//! Excludes this package's own allocations from a memory recording.

use pyo3::ffi;
use pyo3::prelude::*;
use stackweave_memory::SuppressGuard;
use stackweave_memory::sink::sink_if_recording;

/// Runs `body` without recording the memory of the calling thread. Disables the garbage collector, because it would free memory
/// of the program, which must be recorded. (From 3.12 on the interpreter collects only between Python instructions.)
pub(super) fn suppress_recording<R>(_py: Python<'_>, body: impl FnOnce() -> R) -> R {
    let _pause = CollectionPause::begin();
    let _suppress = SuppressGuard::begin();
    body()
}

/// Runs `body` as [`suppress_recording`] does if memory is recorded.
pub(crate) fn suppress_recording_if_active<R>(py: Python<'_>, body: impl FnOnce() -> R) -> R {
    if sink_if_recording().is_null() { body() } else { suppress_recording(py, body) }
}

struct CollectionPause {
    was_on: bool,
}

impl CollectionPause {
    fn begin() -> Self {
        // SAFETY: attached, as the argument of `suppress_recording` shows.
        Self { was_on: unsafe { ffi::PyGC_Disable() } != 0 }
    }
}

impl Drop for CollectionPause {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: as above; the body may release the GIL, but holds it again at its end.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
