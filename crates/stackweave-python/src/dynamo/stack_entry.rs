//! An open call.

use core::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{reduced, same_fields};

/// The number of times that the program has changed the name, file or line of any entry. Counts by function are invalid
/// after a change.
static RENAMES: AtomicU64 = AtomicU64::new(0);

pub(super) fn renames() -> u64 {
    RENAMES.load(Ordering::Relaxed)
}

/// An open call, with the fields of torch's dataclass of this name.
///
/// child_time_ns is the time of its callees that have ended.
#[pyclass(module = "stackweave.torch.dynamo", subclass, weakref)]
pub(crate) struct ProfilerStackEntry {
    #[pyo3(get)]
    func_name: Py<PyString>,
    #[pyo3(get)]
    filename: Py<PyString>,
    #[pyo3(get)]
    firstlineno: i64,
    #[pyo3(get, set)]
    start_time_ns: i64,
    #[pyo3(get, set)]
    pub(super) child_time_ns: i64,
    #[pyo3(get, set)]
    pub(super) is_primitive_call: bool,
}

#[pymethods]
impl ProfilerStackEntry {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "these are the fields of torch's class")]
    #[pyo3(signature = (func_name, filename, firstlineno, start_time_ns, child_time_ns, is_primitive_call=true))]
    pub(super) fn new(
        func_name: Py<PyString>,
        filename: Py<PyString>,
        firstlineno: i64,
        start_time_ns: i64,
        child_time_ns: i64,
        is_primitive_call: bool,
    ) -> Self {
        Self { func_name, filename, firstlineno, start_time_ns, child_time_ns, is_primitive_call }
    }

    #[setter]
    fn set_func_name(&mut self, func_name: Py<PyString>) {
        RENAMES.fetch_add(1, Ordering::Relaxed);
        self.func_name = func_name;
    }

    #[setter]
    fn set_filename(&mut self, filename: Py<PyString>) {
        RENAMES.fetch_add(1, Ordering::Relaxed);
        self.filename = filename;
    }

    #[setter]
    fn set_firstlineno(&mut self, firstlineno: i64) {
        RENAMES.fetch_add(1, Ordering::Relaxed);
        self.firstlineno = firstlineno;
    }

    /// Returns the text of a dataclass.
    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        let (py, kind) = (this.py(), this.get_type().qualname()?);
        let entry = this.try_borrow()?;
        let repr = |text: &Py<PyString>| text.bind(py).repr().map(|text| text.to_string_lossy().into_owned());
        Ok(format!(
            "{}(func_name={}, filename={}, firstlineno={}, start_time_ns={}, child_time_ns={}, is_primitive_call={})",
            kind.to_string_lossy(),
            repr(&entry.func_name)?,
            repr(&entry.filename)?,
            entry.firstlineno,
            entry.start_time_ns,
            entry.child_time_ns,
            if entry.is_primitive_call { "True" } else { "False" }
        ))
    }

    fn __eq__<'py>(this: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        same_fields(this.as_any(), other, fields)
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        reduced(this.as_any(), fields(this.as_any())?)
    }
}

/// Returns all fields in their order.
fn fields<'py>(entry: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, entry) = (entry.py(), entry.cast::<ProfilerStackEntry>()?.try_borrow()?);
    let function = (&entry.func_name, &entry.filename, entry.firstlineno);
    let numbers = (entry.start_time_ns, entry.child_time_ns, entry.is_primitive_call);
    let (function, numbers) = (function.into_pyobject(py)?, numbers.into_pyobject(py)?);
    Ok(function.as_sequence().concat(numbers.as_sequence())?.into_any())
}
