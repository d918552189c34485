//! `PyRegistration`: removes a registered callable.

use pyo3::prelude::*;

use crate::{python_extra_frames, python_frame_source};

/// The registration of a callable that returns frames, until remove() is called or the with block ends. Dropping this object
/// does not remove the callable.
///
/// >>> registration = stackweave.register_frame_source(lambda: [("query", "shop.sql", 3)])
/// >>> registration.remove()
#[pyclass(frozen, module = "stackweave", name = "Registration")]
#[derive(Debug)]
pub(crate) struct PyRegistration {
    pub(crate) kind: CallbackKind,
    pub(crate) number: u64,
}

/// The kind of a registered callable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallbackKind {
    FrameSource,
    ExtraFrames,
}

#[pymethods]
impl PyRegistration {
    /// Removes the callable. Repeated calls have no effect.
    fn remove(&self) {
        match self.kind {
            CallbackKind::FrameSource => python_frame_source::remove(self.number),
            CallbackKind::ExtraFrames => python_extra_frames::remove(self.number),
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
