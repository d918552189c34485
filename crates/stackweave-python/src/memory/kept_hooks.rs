//! The Python class `KeptMemoryHooks`.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use stackweave_memory::KeptHooks;

/// Keeps the hooks of memory recorders installed between recorders, from its creation to `close()`.
#[pyclass(frozen, module = "stackweave._native")]
#[derive(Debug)]
pub(super) struct KeptMemoryHooks {
    kept: Mutex<Option<KeptHooks>>,
}

#[pymethods]
impl KeptMemoryHooks {
    #[new]
    fn new() -> Self {
        Self { kept: Mutex::new(Some(KeptHooks::begin())) }
    }

    /// Removes the hooks if no recorder uses them. Repeated calls have no effect.
    fn close(&self, py: Python<'_>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Release the GIL, because this takes the loader's lock, whose owner may wait for the GIL.
        py.detach(|| drop(kept));
    }
}
