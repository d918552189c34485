//! Counts the Python programs that this one starts, so that the user can be warned: without `subprocesses` they are not recorded.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::borrow::Cow;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

/// The audit events by which the interpreter reports that a program is started.
pub(super) const EVENTS: [&CStr; 3] = [c"subprocess.Popen", c"os.posix_spawn", c"os.system"];

static STARTED: AtomicUsize = AtomicUsize::new(0);

/// Returns how many Python programs, recognized by name, this process has started since its first recording began. The
/// interpreter does not report programs of multiprocessing.
#[pyfunction]
pub(crate) fn started_programs() -> usize {
    STARTED.load(Ordering::Relaxed)
}

/// Counts a program if it is a Python interpreter. The arguments are the program, or a shell command, and the argument list.
///
/// # Safety
/// The interpreter is calling. The arguments are null or an object.
#[cold]
pub(super) unsafe fn count(arguments: *mut ffi::PyObject) {
    // SAFETY: guaranteed by the caller.
    let is_python = unsafe {
        let py = Python::assume_attached();
        Bound::from_borrowed_ptr_or_opt(py, arguments).is_some_and(|arguments| is_python(&arguments).unwrap_or(false))
    };
    if is_python {
        STARTED.fetch_add(1, Ordering::Relaxed);
    }
}

fn is_python(arguments: &Bound<'_, PyAny>) -> PyResult<bool> {
    let arguments = arguments.cast::<PyTuple>()?;
    if is_reported_again(arguments.py())? {
        return Ok(false);
    }
    let program = text_of(&arguments.get_item(0)?);
    if program.as_deref().is_some_and(runs_python) {
        return Ok(true);
    }
    // `sh -c COMMAND`, which subprocess runs with shell=True.
    let Ok(words) = arguments.get_item(1) else { return Ok(false) };
    let Ok(words) = words.cast::<PyList>() else { return Ok(false) };
    let (Ok(option), Ok(command)) = (words.get_item(1), words.get_item(2)) else { return Ok(false) };
    Ok(text_of(&option).as_deref() == Some("-c") && text_of(&command).as_deref().is_some_and(runs_python))
}

/// Returns whether subprocess is calling `os.posix_spawn` for a program that it has already reported.
fn is_reported_again(py: Python<'_>) -> PyResult<bool> {
    // SAFETY: the GIL is held; the frame is borrowed from the thread, or null.
    let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let Some(frame) = frame else { return Ok(false) };
    let name = frame.getattr("f_code")?.getattr("co_name")?;
    Ok(text_of(&name).as_deref() == Some("_posix_spawn"))
}

/// Returns the text of an object that needs no Python code for the conversion.
fn text_of(value: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return text.to_cow().ok().map(Cow::into_owned);
    }
    value.cast::<PyBytes>().ok().map(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned())
}

/// Returns whether a path, or the first word of a command, names a Python interpreter.
fn runs_python(command: &str) -> bool {
    is_name_of_python(command) || command.split_whitespace().next().is_some_and(is_name_of_python)
}

fn is_name_of_python(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|each| each.is_ascii_digit() || each == '.'))
}

#[cfg(test)]
mod tests {
    use super::runs_python;

    #[test]
    fn python_interpreters_are_recognized_by_name() {
        for command in
            ["python", "python3", "/usr/bin/python3.12", "/home/a b/python3", "python script.py", " python3 -c 'x'"]
        {
            assert!(runs_python(command), "{command}");
        }
        for command in ["", "sh", "python-config", "grep python", "/opt/python/bin/tool", "pythonista"] {
            assert!(!runs_python(command), "{command}");
        }
    }
}
