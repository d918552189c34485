//! Reads the keyword arguments of a capture without PyO3: most calls have none, and the others use names that Python's compiler
//! has interned.
//!
//! Hot file: no allocation unless an argument is wrong, no lock.

use core::ffi::CStr;
use core::ops::Range;
use core::ptr;
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};
use pyo3::{ffi, intern};
use stackweave_capture::{CaptureRequest, CaptureStart};

const NAMES: [&CStr; 5] = [c"python", c"native", c"script", c"skip", c"limit"];

/// The interned names, which are never freed.
static INTERNED: [AtomicPtr<ffi::PyObject>; NAMES.len()] = [const { AtomicPtr::new(ptr::null_mut()) }; NAMES.len()];

/// The request of a call without arguments.
pub(crate) const EVERYTHING: CaptureRequest = CaptureRequest {
    python: true,
    native: true,
    script: true,
    skip: 0,
    limit: usize::MAX,
    start: CaptureStart::PythonCaller,
};

/// Interns the names.
pub(crate) fn prepare(py: Python<'_>) {
    for (name, slot) in NAMES.iter().zip(&INTERNED) {
        let interned = PyString::intern(py, &name.to_string_lossy());
        slot.store(interned.into_ptr(), Ordering::Release);
    }
}

/// Reads the request of a call. `function` is the name of the called function.
///
/// # Safety
/// The arguments are those of a running function with `METH_FASTCALL` and `METH_KEYWORDS`.
#[inline]
pub(crate) unsafe fn read(
    function: &str,
    values: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<CaptureRequest> {
    if positional == 0 && names.is_null() {
        return Ok(EVERYTHING);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { read_some(function, values, positional, names) }
}

/// # Safety
/// As for [`read`].
#[inline(never)]
unsafe fn read_some(
    function: &str,
    values: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<CaptureRequest> {
    // SAFETY: the interpreter is calling a function of this module.
    let py = unsafe { Python::assume_attached() };
    if positional != 0 {
        let message = format!("{function}() takes keyword arguments only; {positional} positional were given");
        return Err(PyTypeError::new_err(message));
    }
    let mut request = EVERYTHING;
    // SAFETY: `names` is a tuple of strings, with a value for each; both are borrowed during the call.
    let (count, values) = unsafe {
        let count = ffi::PyTuple_Size(names);
        (count, slice::from_raw_parts(values, count.unsigned_abs()))
    };
    for (index, value) in (0..count).zip(values) {
        // SAFETY: as above.
        let (name, value) = unsafe {
            let name = ffi::PyTuple_GetItem(names, index);
            (name, Bound::from_borrowed_ptr(py, *value))
        };
        match index_of(name) {
            Some(0) => request.python = flag("python", &value)?,
            Some(1) => request.native = flag("native", &value)?,
            Some(2) => request.script = flag("script", &value)?,
            Some(3) => request.skip = count_of("skip", &value)?,
            Some(_) => request.limit = if value.is_none() { usize::MAX } else { count_of("limit", &value)? },
            // SAFETY: a borrowed string.
            None => return Err(unknown(function, &unsafe { Bound::from_borrowed_ptr(py, name) })),
        }
    }
    if !request.python {
        request.start = CaptureStart::OutsideOf(own_code());
    }
    Ok(request)
}

/// Returns the index of a name. Compares addresses first, because the names in a call are interned, except for some that come
/// from `**`.
fn index_of(name: *mut ffi::PyObject) -> Option<usize> {
    let is_same = |known: &AtomicPtr<ffi::PyObject>| known.load(Ordering::Relaxed) == name;
    INTERNED.iter().position(is_same).or_else(|| {
        // SAFETY: a string, compared with a C string.
        let is_equal = |known: &&CStr| unsafe { ffi::PyUnicode_CompareWithASCIIString(name, known.as_ptr()) } == 0;
        NAMES.iter().position(is_equal)
    })
}

fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match value.cast::<PyBool>() {
        Ok(value) => Ok(value.is_true()),
        Err(_) => Err(PyTypeError::new_err(format!("{name} must be a bool, not {}", type_name(value)))),
    }
}

/// Reads a number of frames. A number that is too large becomes the greatest one.
fn count_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = value.py();
    if value.is_exact_instance_of::<PyInt>()
        && let Ok(count) = value.extract()
    {
        return Ok(count);
    }
    let is_number = !value.is_instance_of::<PyBool>()
        && (value.is_instance_of::<PyInt>() || value.hasattr(intern!(py, "__index__"))?);
    if !is_number {
        return Err(PyTypeError::new_err(format!("{name} must be an int, not {}", type_name(value))));
    }
    // SAFETY: attached, with a valid object; the result is null with an exception set on failure.
    let number: Bound<'_, PyAny> = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Index(value.as_ptr()))? };
    if number.lt(0)? {
        return Err(PyValueError::new_err(format!("{name} must not be negative, but is {number}")));
    }
    Ok(number.extract().unwrap_or(usize::MAX))
}

pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().qualname().map_or_else(|_| "this".to_owned(), |name| name.to_string())
}

fn unknown(function: &str, name: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{function}() got an unexpected keyword argument '{name}'"))
}

/// Returns the addresses of this library's code, which native stacks omit.
fn own_code() -> Range<u64> {
    static OWN: OnceLock<Range<u64>> = OnceLock::new();
    let find = || {
        let here = own_code as *const () as u64;
        stackweave_unwind::modules().find(here).map_or(here..here, |(_, module)| module.start..module.end)
    };
    OWN.get_or_init(find).clone()
}
