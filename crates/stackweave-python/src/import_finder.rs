//! A finder of `sys.meta_path` for one module.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Calls a function for the spec of one module, and finds no other module. Trace functions of the program don't see its calls for
/// other modules, because it is not a Python function.
#[pyclass(frozen, module = "stackweave._native")]
pub(crate) struct ImportFinder {
    name: Py<PyString>,
    find: Py<PyAny>,
}

#[pymethods]
impl ImportFinder {
    #[new]
    fn new(name: Py<PyString>, find: Py<PyAny>) -> Self {
        Self { name, find }
    }

    #[pyo3(signature = (fullname, path=None, target=None, /))]
    fn find_spec<'py>(
        &self,
        fullname: &Bound<'py, PyAny>,
        path: Option<&Bound<'py, PyAny>>,
        target: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = fullname.py();
        if fullname.eq(&self.name)? { self.find.bind(py).call1((path, target)).map(Some) } else { Ok(None) }
    }
}
