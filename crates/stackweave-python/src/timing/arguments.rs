//! The arguments of what tells of phases, read without PyO3's help.
//!
//! Hot file: no allocation for a call without keywords, no lock. The GIL is held.

use core::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use stackweave_core::RawFrame;

use crate::recording::{Detail, Place, details_of, flag, frame_at, is, keywords};

type Object = *mut ffi::PyObject;

/// What there is to say about a phase beside its place.
#[derive(Debug)]
pub(super) enum More {
    Nothing,
    /// A function is looked at that has so much bytecode, inlined so deep.
    Code {
        bytecode_count: u64,
        inline_depth: u64,
    },
    /// A JSON object.
    Details(Vec<u8>),
}

impl More {
    /// As a JSON object, or nothing.
    pub(super) fn into_json(self) -> Vec<u8> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Code { bytecode_count, inline_depth } => {
                format!(r#"{{"bytecode_count":{bytecode_count},"inline_depth":{inline_depth}}}"#).into_bytes()
            }
            Self::Details(json) => json,
        }
    }
}

/// `name, filename="", line=0, **attributes` of a function.
///
/// # Safety
/// The arguments are those of a function with `METH_FASTCALL` and `METH_KEYWORDS`, which is running.
#[inline]
pub(super) unsafe fn phase(
    function: &str,
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<(RawFrame, More)> {
    if !keys.is_null() || !(1..=3).contains(&positional) {
        // SAFETY: passed on to the caller.
        return unsafe { phase_with_keywords(function, values, positional, keys) };
    }
    // SAFETY: passed on to the caller.
    unsafe { Ok((frame_at(given(values, positional))?, More::Nothing)) }
}

/// # Safety
/// As for [`phase`], with 0 to 3 positional arguments.
#[inline]
unsafe fn given(values: *const Object, positional: isize) -> Place {
    // SAFETY: as many are read as there are.
    let value = |place: isize| if place < positional { unsafe { *values.offset(place) } } else { ptr::null_mut() };
    Place { name: value(0), filename: value(1), line: value(2) }
}

/// # Safety
/// As for [`phase`].
#[cold]
unsafe fn phase_with_keywords(
    function: &str,
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<(RawFrame, More)> {
    if positional > 3 {
        let message = format!("{function}() takes at most 3 positional arguments but {positional} were given");
        return Err(PyTypeError::new_err(message));
    }
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: passed on to the caller.
    let (mut place, mut attributes) = unsafe {
        let named = keywords(py, values.offset(positional), keys);
        (given(values, positional), named.collect::<Vec<Detail<'_>>>())
    };
    let known = [(c"name", &mut place.name), (c"filename", &mut place.filename), (c"line", &mut place.line)];
    for (name, value) in known {
        let Some(at) = attributes.iter().position(|(attribute, _)| is(attribute, name)) else { continue };
        if !value.is_null() {
            let name = name.to_string_lossy();
            return Err(PyTypeError::new_err(format!("{function}() got multiple values for argument '{name}'")));
        }
        // The caller holds a reference for as long as the call lasts.
        *value = attributes.remove(at).1.as_ptr();
    }
    if place.name.is_null() {
        return Err(PyTypeError::new_err(format!("{function}() missing 1 required argument: 'name'")));
    }
    // SAFETY: passed on to the caller.
    let frame = unsafe { frame_at(place)? };
    Ok((frame, more_of(py, &attributes)?))
}

fn more_of(py: Python<'_>, attributes: &[Detail<'_>]) -> PyResult<More> {
    if attributes.is_empty() {
        return Ok(More::Nothing);
    }
    match code_of(attributes) {
        Some(code) => Ok(code),
        None => details_of(py, attributes).map(More::Details),
    }
}

/// If there is nothing but what is known by name, and that are numbers.
fn code_of(attributes: &[Detail<'_>]) -> Option<More> {
    let (mut bytecode_count, mut inline_depth) = (0, 0);
    for (name, value) in attributes {
        let number = value.cast_exact::<PyInt>().ok()?.extract().ok()?;
        match () {
            () if is(name, c"bytecode_count") => bytecode_count = number,
            () if is(name, c"inline_depth") => inline_depth = number,
            () => return None,
        }
    }
    Some(More::Code { bytecode_count, inline_depth })
}

/// How a phase ends.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) failed: bool,
    /// A JSON object, or nothing.
    pub(super) json: Vec<u8>,
}

/// `*, failed=False, **attributes` of a function.
///
/// # Safety
/// As for [`phase`].
#[cold]
pub(super) unsafe fn ending(
    function: &str,
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<Ending> {
    if positional != 0 {
        let message = format!("{function}() takes no positional arguments but {positional} were given");
        return Err(PyTypeError::new_err(message));
    }
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: passed on to the caller.
    let mut attributes: Vec<Detail<'_>> = unsafe { keywords(py, values, keys) }.collect();
    let mut ending = Ending::default();
    if let Some(at) = attributes.iter().position(|(name, _)| is(name, c"failed")) {
        ending.failed = flag("failed", &attributes.remove(at).1)?;
    }
    if !attributes.is_empty() {
        ending.json = details_of(py, &attributes)?;
    }
    Ok(ending)
}
