//! Guards functions that the interpreter calls directly, without PyO3's wrappers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Runs the body of a function that the interpreter has called. Raises an error or a panic as a Python exception; `failure` is
/// then the result for the interpreter.
pub(crate) fn guarded<R>(failure: R, body: impl FnOnce(Python<'_>) -> PyResult<R>) -> R {
    // SAFETY: the interpreter is calling, so this thread is attached.
    unsafe {
        Python::attach_unchecked(|py| {
            let error = match catch_unwind(AssertUnwindSafe(|| body(py))) {
                Ok(Ok(result)) => return result,
                Ok(Err(error)) => error,
                Err(_) => PyRuntimeError::new_err("stackweave panicked; the message is on the standard error"),
            };
            error.restore(py);
            failure
        })
    }
}
