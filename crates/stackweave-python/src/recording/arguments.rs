//! Reads the arguments of the functions that record events, without PyO3.
//!
//! Hot file: no allocation for a call without details, no lock. The GIL is held.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use stackweave_core::{RawFrame, StackId};

use super::keyword_arguments::{details_of, flag, is_keyword, keywords};
use super::label_cache::frame_of;
use crate::errors::Error;
use crate::frame::PyFrame;
use crate::keywords::type_name;
use crate::traceback_object::Traceback;

type Object = *mut ffi::PyObject;

/// The arguments of an event with a name.
pub(super) struct NamedEvent {
    pub(super) frame: RawFrame,
    pub(super) stack: bool,
    /// A JSON object.
    pub(super) details: Option<Vec<u8>>,
}

/// Reads `name, /, *, stack, **details` of a function.
///
/// # Safety
/// The arguments are those of a running function with `METH_FASTCALL` and `METH_KEYWORDS`.
#[inline]
pub(super) unsafe fn named_event(
    function: &str,
    values: *const Object,
    positional: isize,
    keys: Object,
    stack: bool,
) -> PyResult<NamedEvent> {
    if positional != 1 {
        return Err(wrong_argument_count(function, "1 positional argument, its name,", positional));
    }
    // SAFETY: guaranteed by the caller.
    let frame = unsafe { frame_of(*values)? };
    let mut named_event = NamedEvent { frame, stack, details: None };
    if !keys.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe { add_keywords(&mut named_event, values.add(1), keys)? };
    }
    Ok(named_event)
}

/// # Safety
/// As for [`named_event`], with the values of the keywords.
#[cold]
unsafe fn add_keywords(named_event: &mut NamedEvent, values: *const Object, keys: Object) -> PyResult<()> {
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: guaranteed by the caller.
    let mut details: Vec<_> = unsafe { keywords(py, values, keys) }.collect();
    if let Some(index) = details.iter().position(|(name, _)| is_keyword(name, c"stack")) {
        named_event.stack = flag("stack", &details.remove(index).1)?;
    }
    if !details.is_empty() {
        named_event.details = Some(details_of(py, &details)?);
    }
    Ok(())
}

#[cold]
fn wrong_argument_count(function: &str, expected: &str, given: isize) -> PyErr {
    PyTypeError::new_err(format!("{function}() takes {expected} but {given} were given"))
}

fn unknown(function: &str, name: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{function}() got an unexpected keyword argument '{name}'"))
}

/// Reads `name, value` of a counter.
///
/// # Safety
/// The arguments are those of a running function with `METH_FASTCALL`.
#[inline]
pub(super) unsafe fn name_and_number(values: *const Object, count: isize) -> PyResult<(RawFrame, f64)> {
    if count != 2 {
        return Err(wrong_argument_count("counter", "2 arguments, a name and a value,", count));
    }
    // SAFETY: guaranteed by the caller. -1 with an exception set is an error.
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

/// Reads a number that fits into 64 bits.
///
/// # Safety
/// The calling thread holds the GIL, and `value` is an object.
#[inline]
pub(super) unsafe fn unsigned(name: &str, value: Object) -> PyResult<u64> {
    // SAFETY: guaranteed by the caller. The greatest number with an exception set is an error.
    unsafe {
        let number = ffi::PyLong_AsUnsignedLongLong(value);
        if number == u64::MAX && PyErr::take(Python::assume_attached()).is_some() {
            return Err(not_unsigned(name, &Bound::from_borrowed_ptr(Python::assume_attached(), value)));
        }
        Ok(number)
    }
}

#[cold]
fn not_unsigned(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    if value.is_instance_of::<PyInt>() {
        return PyValueError::new_err(format!("{name} must be from 0 to 2**64 - 1, but is {value}"));
    }
    PyTypeError::new_err(format!("{name} must be an int, not {}", type_name(value)))
}

/// The arguments of an allocation.
pub(super) struct AllocationArguments {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) stack: bool,
}

/// Reads `address, size, /, *, stack=True`.
///
/// # Safety
/// As for [`named_event`].
#[inline]
pub(super) unsafe fn allocation(
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<AllocationArguments> {
    if positional != 2 {
        return Err(wrong_argument_count("allocation", "2 positional arguments, an address and a size,", positional));
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (address, size) = (unsigned("address", *values)?, unsigned("size", *values.add(1))?);
        let mut allocation = AllocationArguments { address, size, stack: true };
        if keys.is_null() {
            return Ok(allocation);
        }
        for (name, value) in keywords(Python::assume_attached(), values.add(2), keys) {
            if !is_keyword(&name, c"stack") {
                return Err(unknown("allocation", &name));
            }
            allocation.stack = flag("stack", &value)?;
        }
        Ok(allocation)
    }
}

/// Reads `traceback=None, /, *, weight=1`. Returns the stack, unless it is the caller's, and the weight.
///
/// # Safety
/// As for [`named_event`].
#[inline]
pub(super) unsafe fn sample(
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<(Option<StackId>, i64)> {
    if positional == 0 && keys.is_null() {
        return Ok((None, 1));
    }
    if positional > 1 {
        return Err(wrong_argument_count("traceback", "at most 1 positional argument", positional));
    }
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    let mut stack = None;
    if positional == 1 {
        // SAFETY: guaranteed by the caller.
        stack = stack_of(&unsafe { Bound::from_borrowed_ptr(py, *values) })?;
    }
    let mut weight = 1;
    // SAFETY: guaranteed by the caller.
    for (name, value) in unsafe { keywords(py, values.add(positional.unsigned_abs()), keys) } {
        if !is_keyword(&name, c"weight") {
            return Err(unknown("traceback", &name));
        }
        if !value.is_instance_of::<PyInt>() {
            return Err(PyTypeError::new_err(format!("weight must be an int, not {}", type_name(&value))));
        }
        let too_wide = |_| PyValueError::new_err(format!("weight must be from -2**63 to 2**63 - 1, but is {value}"));
        weight = value.extract().map_err(too_wide)?;
    }
    Ok((stack, weight))
}

/// Returns the stack of a traceback. The frames of a traceback from another process have only names, so they become labels.
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
