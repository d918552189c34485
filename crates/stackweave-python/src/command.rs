//! The `stackweave` command, for the package's entry point, and programs that it runs.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use stackweave_cpython::program::{self, NotRun, SourceFile};

use crate::errors::StackweaveError;

/// Runs the command with these arguments, the name of the program first, and gives its exit status.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| stackweave_cli::run(arguments))
}

/// Runs a file as `python FILE` does, in the module `__main__`; `-` is the standard input. begin is called right before.
/// False if the file ended with an exception, which was shown without any caller. SystemExit ends the process.
#[pyfunction]
pub(crate) fn run_file(path: OsString, begin: &Bound<'_, PyAny>) -> PyResult<bool> {
    let path = if path == "-" { None } else { Some(CString::new(path.into_vec())) };
    let path = path.transpose().map_err(|_| PyValueError::new_err("embedded null byte"))?;
    let file = SourceFile::open(path).map_err(|reason| match reason {
        NotRun::File(error) => error.into(),
        NotRun::Python(reason) => StackweaveError::new_err(reason.to_string()),
        _ => StackweaveError::new_err("the program was not run"),
    })?;
    begin.call0()?;
    // SAFETY: called by Python, which holds the GIL; the command does so on its main thread.
    Ok(unsafe { file.run() })
}

/// Calls something as the interpreter's own main function does, and begin right before. False if it ended with an
/// exception, which was shown without any caller. SystemExit ends the process.
#[pyfunction]
pub(crate) fn run_call(call: &Bound<'_, PyAny>, begin: &Bound<'_, PyAny>) -> PyResult<bool> {
    begin.call0()?;
    // SAFETY: the GIL is held. The exception, if there is one, is taken by the interpreter, which shows it.
    unsafe {
        let result = ffi::PyObject_CallNoArgs(call.as_ptr());
        if result.is_null() {
            ffi::PyErr_PrintEx(1);
            return Ok(false);
        }
        ffi::Py_DECREF(result);
        Ok(true)
    }
}

/// Ends the process as the interpreter does after a KeyboardInterrupt that nobody has handled.
#[pyfunction]
pub(crate) fn end_interrupted(_py: Python<'_>) -> PyResult<()> {
    // SAFETY: called by Python, which holds the GIL; the command does so on its main thread.
    unsafe { program::end_interrupted() }
}
