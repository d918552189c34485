//! The `stackweave` command, for the package's entry point, and programs that it runs.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStringExt;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_cpython::HiddenCallers;
use stackweave_cpython::program::{self, SourceFile};

use crate::errors::Error;

/// Runs the command with these arguments, the name of the program first, and gives its exit status.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| stackweave_cli::run(arguments))
}

/// Runs a file as `python FILE` does, in the module `__main__`; `-` is the standard input. begin is called right before.
/// After an exception, which is shown without any caller, failed is called, and returns whether the program was
/// interrupted. Then the process ends, unless Python is to go on interactively: False if there was an exception.
#[pyfunction]
pub(crate) fn run_file(path: OsString, begin: &Bound<'_, PyAny>, failed: &Bound<'_, PyAny>) -> PyResult<bool> {
    let path = if path == "-" { None } else { Some(CString::new(path.into_vec())) };
    let path = path.transpose().map_err(|_| PyValueError::new_err("embedded null byte"))?;
    let file = SourceFile::open(path).map_err(Error::from)?;
    // SAFETY: called by Python, which holds the GIL; the command does so on its main thread.
    as_outermost(begin, failed, || unsafe { file.run() })
}

/// Calls something as the interpreter's own main function does. The rest is as for run_file.
#[pyfunction]
pub(crate) fn run_call(call: &Bound<'_, PyAny>, begin: &Bound<'_, PyAny>, failed: &Bound<'_, PyAny>) -> PyResult<bool> {
    // SAFETY: the GIL is held.
    as_outermost(begin, failed, || unsafe { has_ended_well(ffi::PyObject_CallNoArgs(call.as_ptr())) })
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
    // SAFETY: the GIL is held; the interpreter itself refuses what is no code.
    as_outermost(begin, failed, || unsafe { has_ended_well(ffi::PyEval_EvalCode(code.as_ptr(), names, names)) })
}

/// Whether there is a result, which is released. An exception is taken by the interpreter, which shows it.
///
/// # Safety
/// The GIL is held. The result is a new reference, or null with an exception set.
unsafe fn has_ended_well(result: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller has said so.
    unsafe {
        if result.is_null() {
            ffi::PyErr_PrintEx(1);
            return false;
        }
        ffi::Py_DECREF(result);
    }
    true
}

/// Runs a program that sees none of our frames below its own, and ends the process: what the program has registered for
/// its end does not see them either.
fn as_outermost(begin: &Bound<'_, PyAny>, failed: &Bound<'_, PyAny>, run: impl FnOnce() -> bool) -> PyResult<bool> {
    // SAFETY: called by Python, which holds the GIL. Our own code goes on when the frames are visible again, or never.
    let callers = unsafe { HiddenCallers::hide() };
    let ended = begin.call0().map(|_| run());
    if let Ok(ended_well) = ended {
        let was_interrupted = !ended_well && is_true(call_untraced(failed), failed.py());
        if !goes_on_interactively(failed.py()) {
            // SAFETY: as above, on the main thread.
            unsafe { if was_interrupted { program::end_interrupted() } else { program::end(!ended_well) } }
        }
    }
    if let Some(callers) = callers {
        // SAFETY: as above, on the same thread.
        unsafe { callers.show() };
    }
    ended
}

/// Calls a function of ours while the program's functions of `sys.settrace` and `sys.setprofile`, if they are on, are off:
/// they see what they see in a plain run.
#[pyfunction]
pub(crate) fn call_untraced<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let taken = [(c"gettrace", c"settrace"), (c"getprofile", c"setprofile")].map(|(get, set)| {
        // Functions in C, as the recorder's own, are none or not callable here.
        let on = function_of_sys(py, get)?.call0().ok().filter(PyAnyMethods::is_callable)?;
        let set = function_of_sys(py, set)?;
        set.call1((py.None(),)).ok()?;
        Some((set, on))
    });
    let returned = function.call0();
    for (set, on) in taken.into_iter().flatten() {
        set.call1((on,))?;
    }
    returned
}

/// A function of the module `sys`, also where the program has put another module in its place.
fn function_of_sys<'py>(py: Python<'py>, name: &CStr) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the GIL is held, and the name is a C string. The reference is borrowed.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PySys_GetObject(name.as_ptr())) }
}

/// What a function of ours has returned. That it failed is shown, and changes nothing.
fn is_true(returned: PyResult<Bound<'_, PyAny>>, py: Python<'_>) -> bool {
    returned.and_then(|value| value.is_truthy()).unwrap_or_else(|error| {
        error.print(py);
        false
    })
}

/// Whether `python -i` runs the command, or the program wants that.
fn goes_on_interactively(py: Python<'_>) -> bool {
    let flag = || py.import("sys")?.getattr("flags")?.getattr("inspect")?.is_truthy();
    flag().unwrap_or(false) || std::env::var_os("PYTHONINSPECT").is_some_and(|value| !value.is_empty())
}
