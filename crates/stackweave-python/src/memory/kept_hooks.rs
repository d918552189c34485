//! `KeptMemoryHooks` as Python sees it.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use stackweave_memory::KeptHooks;

/// From its creation to `close()`, hooks of memory recorders stay installed from one recorder to the next.
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

    /// Takes the hooks out, if no recorder uses them. A second time it does nothing.
    fn close(&self, py: Python<'_>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Without the GIL: the loader's lock is wanted, and whoever has that may want the GIL.
        py.detach(|| drop(kept));
    }
}
