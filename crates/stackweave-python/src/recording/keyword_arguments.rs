//! Reads keyword arguments without PyO3, and converts them to JSON.
//!
//! Hot file: no lock. The GIL is held.

use core::ffi::CStr;
use core::slice;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use super::json;
use crate::keywords::type_name;

type Object = *mut ffi::PyObject;

/// The name and the value of a keyword argument.
pub(crate) type Detail<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Converts keyword arguments to a JSON object.
pub(crate) fn details_of(py: Python<'_>, details: &[Detail<'_>]) -> PyResult<Vec<u8>> {
    match plain_details(details) {
        Some(plain) => Ok(plain),
        None => other_details(py, details),
    }
}

fn plain_details(details: &[Detail<'_>]) -> Option<Vec<u8>> {
    let mut text = vec![b'{'];
    for (name, value) in details {
        if text.len() > 1 {
            text.push(b',');
        }
        json::put_item(&mut text, name, value)?;
    }
    text.push(b'}');
    Some(text)
}

fn other_details(py: Python<'_>, details: &[Detail<'_>]) -> PyResult<Vec<u8>> {
    let dict = PyDict::new(py);
    for (name, value) in details {
        dict.set_item(name, value)?;
    }
    py.import("stackweave._recorders.native_callbacks")?.call_method1("details", (dict,))?.extract()
}

/// Returns the names and values of the keyword arguments.
///
/// # Safety
/// `keys` is a tuple of strings, with a value for each.
pub(crate) unsafe fn keywords(
    py: Python<'_>,
    values: *const Object,
    keys: Object,
) -> impl Iterator<Item = (Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    // SAFETY: guaranteed by the caller; both are borrowed during the call.
    unsafe {
        let count = if keys.is_null() { 0 } else { ffi::PyTuple_Size(keys) };
        let values = slice::from_raw_parts(values, count.unsigned_abs());
        let item = move |(index, value): (isize, &Object)| {
            let name = ffi::PyTuple_GetItem(keys, index);
            (Bound::from_borrowed_ptr(py, name), Bound::from_borrowed_ptr(py, *value))
        };
        (0..count).zip(values).map(item).collect::<Vec<_>>().into_iter()
    }
}

/// Returns whether a keyword has this name.
pub(crate) fn is_keyword(name: &Bound<'_, PyAny>, known: &CStr) -> bool {
    // SAFETY: the name of a keyword is a string, which is compared with a C string.
    unsafe { ffi::PyUnicode_CompareWithASCIIString(name.as_ptr(), known.as_ptr()) == 0 }
}

/// Reads a bool.
pub(crate) fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match value.cast::<PyBool>() {
        Ok(value) => Ok(value.is_true()),
        Err(_) => Err(PyTypeError::new_err(format!("{name} must be a bool, not {}", type_name(value)))),
    }
}
