//! Doing something of our own while memory is recorded: what it takes is not the program's.

use pyo3::ffi;
use pyo3::prelude::*;
use stackweave_memory::Quiet;
use stackweave_memory::sink::sink_if_recording;

/// Runs `body` without telling of what the calling thread takes. No garbage is collected meanwhile: what that gives back is the
/// program's, and has to be told. (From 3.12 on the interpreter collects between instructions of Python's only.)
pub(super) fn quietly<R>(_py: Python<'_>, body: impl FnOnce() -> R) -> R {
    let _collecting = NotCollecting::begin();
    let _quiet = Quiet::begin();
    body()
}

/// The same for who does not know whether memory is recorded.
pub(crate) fn quietly_if_recorded<R>(py: Python<'_>, body: impl FnOnce() -> R) -> R {
    if sink_if_recording().is_null() { body() } else { quietly(py, body) }
}

struct NotCollecting {
    was_on: bool,
}

impl NotCollecting {
    fn begin() -> Self {
        // SAFETY: attached, as the caller of `quietly` shows.
        Self { was_on: unsafe { ffi::PyGC_Disable() } != 0 }
    }
}

impl Drop for NotCollecting {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: as above: `quietly` gives the GIL away, but has it in the end.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
