//! The arguments of what feeds a recording, read without PyO3's help.
//!
//! Hot file: no allocation for a call without details, no lock. The GIL is held.

use core::ffi::CStr;
use core::slice;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt};
use stackweave_core::{RawFrame, StackId};

use super::json;
use super::label_cache::frame_of;
use crate::errors::Error;
use crate::frame::PyFrame;
use crate::keywords::type_name;
use crate::traceback_object::Traceback;

type Object = *mut ffi::PyObject;

/// What has a name, and perhaps more.
pub(super) struct Named {
    pub(super) frame: RawFrame,
    pub(super) stack: bool,
    /// As JSON.
    pub(super) details: Option<Vec<u8>>,
}

/// `name, /, *, stack, **details` of a function.
///
/// # Safety
/// The arguments are those of a function with `METH_FASTCALL` and `METH_KEYWORDS`, which is running.
#[inline]
pub(super) unsafe fn named(
    function: &str,
    values: *const Object,
    positional: isize,
    keys: Object,
    stack: bool,
) -> PyResult<Named> {
    if positional != 1 {
        return Err(count_is_wrong(function, "1 positional argument, its name,", positional));
    }
    // SAFETY: passed on to the caller.
    let frame = unsafe { frame_of(*values)? };
    let mut named = Named { frame, stack, details: None };
    if !keys.is_null() {
        // SAFETY: passed on to the caller.
        unsafe { add_keywords(&mut named, values.add(1), keys)? };
    }
    Ok(named)
}

/// # Safety
/// As for [`named`], with the values of the keywords.
#[cold]
unsafe fn add_keywords(named: &mut Named, values: *const Object, keys: Object) -> PyResult<()> {
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: passed on to the caller.
    let mut details: Vec<_> = unsafe { keywords(py, values, keys) }.collect();
    if let Some(place) = details.iter().position(|(name, _)| is(name, c"stack")) {
        named.stack = flag("stack", &details.remove(place).1)?;
    }
    if !details.is_empty() {
        named.details = Some(details_of(py, &details)?);
    }
    Ok(())
}

/// A name, and the value that it is given.
pub(crate) type Detail<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// As a JSON object.
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
    py.import("stackweave._feeding")?.call_method1("details", (dict,))?.extract()
}

/// # Safety
/// `keys` is a tuple of strings, with a value for each.
pub(crate) unsafe fn keywords(
    py: Python<'_>,
    values: *const Object,
    keys: Object,
) -> impl Iterator<Item = (Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    // SAFETY: passed on to the caller; both are borrowed while the call lasts.
    unsafe {
        let count = if keys.is_null() { 0 } else { ffi::PyTuple_Size(keys) };
        let values = slice::from_raw_parts(values, count.unsigned_abs());
        let item = move |(place, value): (isize, &Object)| {
            let name = ffi::PyTuple_GetItem(keys, place);
            (Bound::from_borrowed_ptr(py, name), Bound::from_borrowed_ptr(py, *value))
        };
        (0..count).zip(values).map(item).collect::<Vec<_>>().into_iter()
    }
}

pub(crate) fn is(name: &Bound<'_, PyAny>, known: &CStr) -> bool {
    // SAFETY: names of keywords are strings, compared with a C string.
    unsafe { ffi::PyUnicode_CompareWithASCIIString(name.as_ptr(), known.as_ptr()) == 0 }
}

pub(crate) fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match value.cast::<PyBool>() {
        Ok(value) => Ok(value.is_true()),
        Err(_) => Err(PyTypeError::new_err(format!("{name} must be a bool, not {}", type_name(value)))),
    }
}

#[cold]
fn count_is_wrong(function: &str, wanted: &str, given: isize) -> PyErr {
    PyTypeError::new_err(format!("{function}() takes {wanted} but {given} were given"))
}

fn unknown(function: &str, name: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{function}() got an unexpected keyword argument '{name}'"))
}

/// `name, value` of a counter.
///
/// # Safety
/// The arguments are those of a function with `METH_FASTCALL`, which is running.
#[inline]
pub(super) unsafe fn name_and_number(values: *const Object, count: isize) -> PyResult<(RawFrame, f64)> {
    if count != 2 {
        return Err(count_is_wrong("counter", "2 arguments, a name and a value,", count));
    }
    // SAFETY: passed on to the caller. -1 with an exception set is a failure.
    unsafe {
        let frame = frame_of(*values)?;
        let value = ffi::PyFloat_AsDouble(*values.add(1));
        if value.to_bits() == (-1.0_f64).to_bits()
            && let Some(error) = PyErr::take(Python::assume_attached())
        {
            return Err(error);
        }
        Ok((frame, value))
    }
}

/// A number that fits a word.
///
/// # Safety
/// The calling thread holds the GIL, and `value` is an object.
#[inline]
pub(super) unsafe fn unsigned(name: &str, value: Object) -> PyResult<u64> {
    // SAFETY: passed on to the caller. The greatest number with an exception set is a failure.
    unsafe {
        let number = ffi::PyLong_AsUnsignedLongLong(value);
        if number == u64::MAX && PyErr::take(Python::assume_attached()).is_some() {
            return Err(no_word(name, &Bound::from_borrowed_ptr(Python::assume_attached(), value)));
        }
        Ok(number)
    }
}

#[cold]
fn no_word(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    if value.is_instance_of::<PyInt>() {
        return PyValueError::new_err(format!("{name} must be from 0 to 2**64 - 1, but is {value}"));
    }
    PyTypeError::new_err(format!("{name} must be an int, not {}", type_name(value)))
}

/// Memory that was taken.
pub(super) struct Allocated {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) stack: bool,
}

/// `address, size, /, *, stack=True`.
///
/// # Safety
/// As for [`named`].
#[inline]
pub(super) unsafe fn allocated(values: *const Object, positional: isize, keys: Object) -> PyResult<Allocated> {
    if positional != 2 {
        return Err(count_is_wrong("allocation", "2 positional arguments, an address and a size,", positional));
    }
    // SAFETY: passed on to the caller.
    unsafe {
        let (address, size) = (unsigned("address", *values)?, unsigned("size", *values.add(1))?);
        let mut allocated = Allocated { address, size, stack: true };
        if keys.is_null() {
            return Ok(allocated);
        }
        for (name, value) in keywords(Python::assume_attached(), values.add(2), keys) {
            if !is(&name, c"stack") {
                return Err(unknown("allocation", &name));
            }
            allocated.stack = flag("stack", &value)?;
        }
        Ok(allocated)
    }
}

/// `traceback=None, /, *, weight=1`: which stack, if it is not that of the caller, and what it counts.
///
/// # Safety
/// As for [`named`].
#[inline]
pub(super) unsafe fn weighted(
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<(Option<StackId>, i64)> {
    if positional == 0 && keys.is_null() {
        return Ok((None, 1));
    }
    if positional > 1 {
        return Err(count_is_wrong("traceback", "at most 1 positional argument", positional));
    }
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    let mut stack = None;
    if positional == 1 {
        // SAFETY: passed on to the caller.
        stack = stack_of(&unsafe { Bound::from_borrowed_ptr(py, *values) })?;
    }
    let mut weight = 1;
    // SAFETY: passed on to the caller.
    for (name, value) in unsafe { keywords(py, values.add(positional.unsigned_abs()), keys) } {
        if !is(&name, c"weight") {
            return Err(unknown("traceback", &name));
        }
        if !value.is_instance_of::<PyInt>() {
            return Err(PyTypeError::new_err(format!("weight must be an int, not {}", type_name(&value))));
        }
        let wide = |_| PyValueError::new_err(format!("weight must be from -2**63 to 2**63 - 1, but is {value}"));
        weight = value.extract().map_err(wide)?;
    }
    Ok((stack, weight))
}

/// The stack of a traceback. Of one from another process the names are known, and nothing else: they become labels.
fn stack_of(object: &Bound<'_, PyAny>) -> PyResult<Option<StackId>> {
    if object.is_none() {
        return Ok(None);
    }
    let Some(traceback) = Traceback::from_object(object) else {
        let message = format!("traceback must be a stackweave.Traceback, not {}", type_name(object));
        return Err(PyTypeError::new_err(message));
    };
    if let Some(stack) = traceback.object().stack {
        return Ok(Some(stack));
    }
    let no_memory = || Error::other("no memory for a new stack");
    let mut labels = Vec::new();
    for frame in traceback.frames()?.iter() {
        let frame = &frame.cast::<PyFrame>()?.get().frame;
        let filename = frame.filename.as_deref().unwrap_or_default();
        let label = stackweave_store::label(&frame.name, filename, frame.position.line.unwrap_or(0));
        labels.push(label.ok_or_else(no_memory)?);
    }
    Ok(Some(stackweave_capture::intern(&labels).ok_or_else(no_memory)?))
}
