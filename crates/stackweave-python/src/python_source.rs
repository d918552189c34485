//! The interpreter that has imported this module, as a frame source.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCode, PyDict};
use stackweave_core::CodeId;
use stackweave_cpython::{CodePointer, PythonSource, Unavailable};

use crate::keywords::type_name;

static SOURCE: OnceLock<Result<&'static PythonSource, Unavailable>> = OnceLock::new();

/// Registers Python as a frame source. Where that fails, stacks have only native frames, and `stats()` gives the reason.
pub(crate) fn install(_py: Python<'_>) {
    if SOURCE.get().is_some() {
        return;
    }
    let source = PythonSource::install();
    if let Ok(source) = source {
        // Registered until the process exits. None would mean that another copy of this library has registered Python.
        std::mem::forget(stackweave_capture::register_source(Arc::new(*source)));
    }
    let _ = SOURCE.set(source);
}

/// Returns the source, if Python is registered.
pub(crate) fn source() -> Option<&'static PythonSource> {
    SOURCE.get().and_then(|source| source.as_ref().ok().copied())
}

/// Returns the id of a function's code, or of a code object. None if Python frames are not available.
pub(crate) fn code_id_of(object: &Bound<'_, PyAny>) -> PyResult<Option<CodeId>> {
    let code = object.getattr(intern!(object.py(), "__code__")).unwrap_or_else(|_| object.clone());
    if !code.is_instance_of::<PyCode>() {
        let message = format!("runs_in must be a function or its code, not {}", type_name(object));
        return Err(PyTypeError::new_err(message));
    }
    // SAFETY: the GIL is held, and the code object is alive.
    Ok(source().and_then(|source| unsafe { source.code_id(CodePointer::new(code.as_ptr() as u64)) }))
}

/// Returns statistics of the reads of Python frames.
pub(crate) fn stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let Some(source) = source() else {
        let reason = SOURCE.get().and_then(|source| source.err()).map(|reason| reason.to_string());
        dict.set_item("reader", "none")?;
        dict.set_item("fallback_reason", reason.unwrap_or_else(|| "not installed".to_owned()))?;
        return Ok(dict);
    };
    let stats = source.stats();
    dict.set_item("reader", stats.reader)?;
    dict.set_item("fallback_reason", stats.fallback_reason)?;
    dict.set_item("death_watch", stats.death_watch)?;
    dict.set_item("codes", stats.codes)?;
    dict.set_item("live_codes", stats.live_codes)?;
    dict.set_item("deaths", stats.deaths)?;
    dict.set_item("code_bytes", stats.code_bytes)?;
    Ok(dict)
}
