//! `Registration`: what a registered callable is removed by.

use pyo3::prelude::*;

use crate::{python_extra_frames, python_frame_source};

/// A callable that is asked for frames, until remove() is called or the with block ends. Forgetting this changes nothing.
#[pyclass(frozen, module = "stackweave")]
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) kind: Kind,
    pub(crate) number: u64,
}

/// What the callable gives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    FrameSource,
    ExtraFrames,
}

#[pymethods]
impl Registration {
    /// Removes the callable. Doing so again changes nothing.
    fn remove(&self) {
        match self.kind {
            Kind::FrameSource => python_frame_source::remove(self.number),
            Kind::ExtraFrames => python_extra_frames::remove(self.number),
        }
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (_kind, _error, _traceback, /))]
    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _error: &Bound<'_, PyAny>, _traceback: &Bound<'_, PyAny>) {
        self.remove();
    }
}
