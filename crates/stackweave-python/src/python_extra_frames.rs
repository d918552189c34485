//! Code generators that are written in Python.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use stackweave_capture::RegisteredExtraFrames;
use stackweave_core::{ExtraFrames, SourceLocation};

use crate::keywords::type_name;
use crate::python_location::location_of;
use crate::registration::{CallbackKind, PyRegistration};

/// The number of exceptions that callables have raised.
pub(crate) static ERRORS: AtomicU64 = AtomicU64::new(0);

/// The registered code generators by number. Locked only briefly, with the GIL held.
static REGISTERED: Mutex<BTreeMap<u64, RegisteredExtraFrames>> = Mutex::new(BTreeMap::new());
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

struct PythonCodeGenerator {
    callable: Py<PyAny>,
    has_failed: AtomicBool,
}

/// Adds a code generator, which reports the original frames of the code in its generated files.
///
/// extra(filename, line) is called for each line of Python code in a batch of stacks that are resolved. It returns the original
/// frames, innermost first, as (name, filename, line), or None if it did not generate the file.
///
/// >>> with stackweave.register_extra_frames(lambda filename, line: None):
/// ...     traceback = stackweave.capture()
#[pyfunction]
pub(crate) fn register_extra_frames(extra: &Bound<'_, PyAny>) -> PyResult<PyRegistration> {
    if !extra.is_callable() {
        return Err(PyTypeError::new_err(format!("extra must be callable; {} is not", type_name(extra))));
    }
    let generator = PythonCodeGenerator { callable: extra.clone().unbind(), has_failed: AtomicBool::new(false) };
    let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    let registered = stackweave_capture::register_extra_frames(Arc::new(generator));
    all().insert(number, registered);
    Ok(PyRegistration { kind: CallbackKind::ExtraFrames, number })
}

pub(crate) fn remove(number: u64) {
    let removed = all().remove(&number);
    // Dropping it drops the callable, which may run any code, so the lock must not be held here.
    drop(removed);
}

fn all() -> MutexGuard<'static, BTreeMap<u64, RegisteredExtraFrames>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExtraFrames for PythonCodeGenerator {
    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        let call = |py: Python<'_>| {
            self.call(py, filename, line).unwrap_or_else(|error| {
                ERRORS.fetch_add(1, Ordering::Relaxed);
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    error.write_unraisable(py, Some(self.callable.bind(py)));
                }
                Vec::new()
            })
        };
        Python::try_attach(call).unwrap_or_default()
    }
}

impl PythonCodeGenerator {
    fn call(&self, py: Python<'_>, filename: &str, line: u32) -> PyResult<Vec<SourceLocation>> {
        let result = self.callable.bind(py).call1((filename, line))?;
        if result.is_none() {
            return Ok(Vec::new());
        }
        result.try_iter()?.map(|location| location_of(&location?)).collect()
    }
}
