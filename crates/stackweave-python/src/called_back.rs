//! Functions that the interpreter calls without PyO3 in between.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Runs what the interpreter has called for. An error is raised, and so is a panic; `failure` is what the interpreter is
/// then told.
pub(crate) fn guarded<R>(failure: R, body: impl FnOnce(Python<'_>) -> PyResult<R>) -> R {
    // SAFETY: the interpreter runs, since it calls; what is asked for here is that PyO3 knows.
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
