//! The timing of one call.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::{reduced, same_fields};

/// The timing of one traced call in the terms of cProfile, with the fields of torch's dataclass of this name.
///
/// cumtime_ns is the time including all callees, tottime_ns the time without them. A call is primitive if its function was not
/// open already. call_stack has the open functions, outermost first: name, file and line each.
#[pyclass(module = "stackweave.torch.dynamo", subclass, weakref)]
pub(crate) struct FunctionTraceTiming {
    #[pyo3(get, set)]
    func_name: Py<PyString>,
    #[pyo3(get, set)]
    filename: Py<PyString>,
    #[pyo3(get, set)]
    firstlineno: i64,
    #[pyo3(get, set)]
    cumtime_ns: i64,
    #[pyo3(get, set)]
    tottime_ns: i64,
    #[pyo3(get, set)]
    bytecode_count: i64,
    #[pyo3(get, set)]
    inline_depth: i64,
    #[pyo3(get, set)]
    caller_func_name: Option<Py<PyString>>,
    #[pyo3(get, set)]
    caller_filename: Option<Py<PyString>>,
    #[pyo3(get, set)]
    caller_firstlineno: Option<i64>,
    #[pyo3(get, set)]
    is_primitive_call: bool,
    #[pyo3(get, set)]
    call_stack: Py<PyTuple>,
}

/// A function as pstats identifies it: file, line and name.
type FunctionTuple<'py> = (Bound<'py, PyString>, i64, Bound<'py, PyString>);

#[pymethods]
impl FunctionTraceTiming {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "these are the fields of torch's class")]
    #[pyo3(
        signature = (
            func_name, filename, firstlineno, cumtime_ns, tottime_ns, bytecode_count, inline_depth,
            caller_func_name=None, caller_filename=None, caller_firstlineno=None, is_primitive_call=true, call_stack=None,
        ),
        text_signature = "(func_name, filename, firstlineno, cumtime_ns, tottime_ns, bytecode_count, inline_depth, \
            caller_func_name=None, caller_filename=None, caller_firstlineno=None, is_primitive_call=True, call_stack=())"
    )]
    fn new(
        py: Python<'_>,
        func_name: Py<PyString>,
        filename: Py<PyString>,
        firstlineno: i64,
        cumtime_ns: i64,
        tottime_ns: i64,
        bytecode_count: i64,
        inline_depth: i64,
        caller_func_name: Option<Py<PyString>>,
        caller_filename: Option<Py<PyString>>,
        caller_firstlineno: Option<i64>,
        is_primitive_call: bool,
        call_stack: Option<Py<PyTuple>>,
    ) -> Self {
        Self {
            func_name,
            filename,
            firstlineno,
            cumtime_ns,
            tottime_ns,
            bytecode_count,
            inline_depth,
            caller_func_name,
            caller_filename,
            caller_firstlineno,
            is_primitive_call,
            call_stack: call_stack.unwrap_or_else(|| PyTuple::empty(py).unbind()),
        }
    }

    /// The older name of cumtime_ns.
    #[getter]
    fn trace_time_ns(&self) -> i64 {
        self.cumtime_ns
    }

    /// The older name of cumtime_ms.
    #[getter]
    fn trace_time_ms(&self) -> f64 {
        milliseconds(self.cumtime_ns)
    }

    /// The time including all callees, in milliseconds.
    #[getter]
    fn cumtime_ms(&self) -> f64 {
        milliseconds(self.cumtime_ns)
    }

    /// The time without callees, in milliseconds.
    #[getter]
    fn tottime_ms(&self) -> f64 {
        milliseconds(self.tottime_ns)
    }

    /// The caller as pstats identifies it: file, line and name.
    #[getter]
    fn caller_key<'py>(&self, py: Python<'py>) -> Option<FunctionTuple<'py>> {
        let name = self.caller_func_name.as_ref()?.bind(py).clone();
        let file = self.caller_filename.as_ref().map_or_else(|| PyString::new(py, ""), |file| file.bind(py).clone());
        Some((file, self.caller_firstlineno.unwrap_or(0), name))
    }

    /// The function as pstats identifies it: file, line and name.
    #[getter]
    fn func_key<'py>(&self, py: Python<'py>) -> FunctionTuple<'py> {
        (self.filename.bind(py).clone(), self.firstlineno, self.func_name.bind(py).clone())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (name, file) = (self.func_name.bind(py).to_string_lossy(), self.filename.bind(py).to_string_lossy());
        let times = (milliseconds(self.cumtime_ns), milliseconds(self.tottime_ns));
        format!(
            "FunctionTraceTiming({name} at {file}:{}, cumtime={:.2}ms, tottime={:.2}ms, bytecode={}, depth={})",
            self.firstlineno, times.0, times.1, self.bytecode_count, self.inline_depth
        )
    }

    fn __eq__<'py>(this: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        same_fields(this.as_any(), other, fields)
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        reduced(this.as_any(), fields(this.as_any())?)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.call_stack)
    }
}

/// Returns all fields in their order.
fn fields<'py>(timing: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, timing) = (timing.py(), timing.cast::<FunctionTraceTiming>()?.try_borrow()?);
    let function = (&timing.func_name, &timing.filename, timing.firstlineno);
    let numbers = (timing.cumtime_ns, timing.tottime_ns, timing.bytecode_count, timing.inline_depth);
    let caller = (&timing.caller_func_name, &timing.caller_filename, timing.caller_firstlineno);
    let rest = (timing.is_primitive_call, &timing.call_stack);
    let parts =
        (function.into_pyobject(py)?, numbers.into_pyobject(py)?, caller.into_pyobject(py)?, rest.into_pyobject(py)?);
    let all = parts.0.as_sequence().concat(parts.1.as_sequence())?;
    let all = all.concat(parts.2.as_sequence())?.concat(parts.3.as_sequence())?;
    Ok(all.into_any())
}

#[expect(clippy::cast_precision_loss, reason = "the property is a float, as in Python")]
fn milliseconds(ns: i64) -> f64 {
    ns as f64 / 1e6
}
