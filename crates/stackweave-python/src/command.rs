//! The `stackweave` command, for the entry point of the package, and the programs that it runs.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStringExt;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_cpython::HiddenCallers;
use stackweave_cpython::program::{self, ProgramFile};

use crate::errors::Error;

/// Runs the command with these arguments, of which the first is the program's name. Returns the exit status.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| stackweave_cli::run(arguments))
}

/// Runs a file as `python FILE` does, in the module `__main__`; `-` is the standard input. Calls begin just before. After an
/// uncaught exception, which is shown without the callers of the program, calls failed, which returns whether the program was
/// interrupted. Then exits the process, unless Python continues interactively; returns False then if there was an exception.
#[pyfunction]
pub(crate) fn run_file(path: OsString, begin: &Bound<'_, PyAny>, failed: &Bound<'_, PyAny>) -> PyResult<bool> {
    let path = if path == "-" { None } else { Some(CString::new(path.into_vec())) };
    let path = path.transpose().map_err(|_| PyValueError::new_err("embedded null byte"))?;
    let file = ProgramFile::open(path).map_err(Error::from)?;
    // SAFETY: called by Python, which holds the GIL; the command does so on its main thread.
    run_outermost(begin, failed, || unsafe { file.run() })
}

/// Calls a function as the interpreter's main function does. The rest is as for run_file.
#[pyfunction]
pub(crate) fn run_call(call: &Bound<'_, PyAny>, begin: &Bound<'_, PyAny>, failed: &Bound<'_, PyAny>) -> PyResult<bool> {
    // SAFETY: the GIL is held.
    run_outermost(begin, failed, || unsafe { has_succeeded(ffi::PyObject_CallNoArgs(call.as_ptr())) })
}

/// Runs code in the namespace of a module, as `python -c` does. The rest is as for run_file.
#[pyfunction]
pub(crate) fn run_code(
    code: &Bound<'_, PyAny>,
    namespace: &Bound<'_, PyDict>,
    begin: &Bound<'_, PyAny>,
    failed: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let names = namespace.as_ptr();
    // SAFETY: the GIL is held; the interpreter rejects objects that are not code.
    run_outermost(begin, failed, || unsafe { has_succeeded(ffi::PyEval_EvalCode(code.as_ptr(), names, names)) })
}

/// Returns whether a call has succeeded, and releases its result. The interpreter prints an exception.
///
/// # Safety
/// The GIL is held. The result is a new reference, or null with an exception set.
unsafe fn has_succeeded(result: *mut ffi::PyObject) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if result.is_null() {
            ffi::PyErr_PrintEx(1);
            return false;
        }
        ffi::Py_DECREF(result);
    }
    true
}

/// Runs a program that does not see the frames of this package below its own, and exits the process. Exit handlers of the
/// program don't see these frames either.
fn run_outermost(begin: &Bound<'_, PyAny>, failed: &Bound<'_, PyAny>, run: impl FnOnce() -> bool) -> PyResult<bool> {
    // SAFETY: called by Python, which holds the GIL. The code of this package continues only after the frames are visible again.
    let callers = unsafe { HiddenCallers::hide() };
    let result = begin.call0().map(|_| run());
    if let Ok(has_succeeded) = result {
        let was_interrupted = !has_succeeded && is_true(call_untraced(failed), failed.py());
        if !continues_interactively(failed.py()) {
            // SAFETY: as above, on the main thread.
            unsafe { if was_interrupted { program::end_interrupted() } else { program::end(!has_succeeded) } }
        }
    }
    if let Some(callers) = callers {
        // SAFETY: as above, on the same thread.
        unsafe { callers.show() };
    }
    result
}

/// Calls a function of this package while the program's `sys.settrace` and `sys.setprofile` functions are disabled, so that they
/// see the same calls as without this package.
#[pyfunction]
pub(crate) fn call_untraced<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let disabled = [(c"gettrace", c"settrace"), (c"getprofile", c"setprofile")].map(|(get, set)| {
        // A function in C, such as the recorder's own, is None or an object that is not callable.
        let enabled = function_of_sys(py, get)?.call0().ok().filter(PyAnyMethods::is_callable)?;
        let set = function_of_sys(py, set)?;
        set.call1((py.None(),)).ok()?;
        Some((set, enabled))
    });
    let result = function.call0();
    for (set, enabled) in disabled.into_iter().flatten() {
        set.call1((enabled,))?;
    }
    result
}

/// Returns a function of the module `sys`, even if the program has replaced that module.
fn function_of_sys<'py>(py: Python<'py>, name: &CStr) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the GIL is held, and the name is a C string. The reference is borrowed.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PySys_GetObject(name.as_ptr())) }
}

/// Converts the result of a function of this package to a bool. An exception is printed and counts as false.
fn is_true(returned: PyResult<Bound<'_, PyAny>>, py: Python<'_>) -> bool {
    returned.and_then(|value| value.is_truthy()).unwrap_or_else(|error| {
        error.print(py);
        false
    })
}

/// Returns whether `python -i` runs the command, or the program has requested interactive mode.
fn continues_interactively(py: Python<'_>) -> bool {
    let flag = || py.import("sys")?.getattr("flags")?.getattr("inspect")?.is_truthy();
    flag().unwrap_or(false) || std::env::var_os("PYTHONINSPECT").is_some_and(|value| !value.is_empty())
}
