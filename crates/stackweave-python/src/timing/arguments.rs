//! Reads the arguments of the functions that record phases, without PyO3.
//!
//! Hot file: no allocation for a call without keywords, no lock. The GIL is held.

use core::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use stackweave_core::RawFrame;

use crate::recording::{Detail, LabelArguments, details_of, flag, frame_of_label, is_keyword, keywords};

type Object = *mut ffi::PyObject;

/// The attributes of a phase.
#[derive(Debug)]
pub(super) enum PhaseAttributes {
    Nothing,
    /// The size and inlining depth of a compiled function.
    Code {
        bytecode_count: u64,
        inline_depth: u64,
    },
    /// A JSON object.
    Json(Vec<u8>),
}

impl PhaseAttributes {
    /// Returns the attributes as a JSON object, or nothing.
    pub(super) fn into_json(self) -> Vec<u8> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Code { bytecode_count, inline_depth } => {
                format!(r#"{{"bytecode_count":{bytecode_count},"inline_depth":{inline_depth}}}"#).into_bytes()
            }
            Self::Json(json) => json,
        }
    }
}

/// Reads `name, filename="", lineno=0, **attributes` of a function.
///
/// # Safety
/// The arguments are those of a running function with `METH_FASTCALL` and `METH_KEYWORDS`.
#[inline]
pub(super) unsafe fn phase(
    function: &str,
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<(RawFrame, PhaseAttributes)> {
    if !keys.is_null() || !(1..=3).contains(&positional) {
        // SAFETY: guaranteed by the caller.
        return unsafe { phase_with_keywords(function, values, positional, keys) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { Ok((frame_of_label(positional_label(values, positional))?, PhaseAttributes::Nothing)) }
}

/// # Safety
/// As for [`phase`], with 0 to 3 positional arguments.
#[inline]
unsafe fn positional_label(values: *const Object, positional: isize) -> LabelArguments {
    // SAFETY: only positional arguments are read.
    let value = |index: isize| if index < positional { unsafe { *values.offset(index) } } else { ptr::null_mut() };
    LabelArguments { name: value(0), filename: value(1), line: value(2) }
}

/// # Safety
/// As for [`phase`].
#[cold]
unsafe fn phase_with_keywords(
    function: &str,
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<(RawFrame, PhaseAttributes)> {
    if positional > 3 {
        let message = format!("{function}() takes at most 3 positional arguments but {positional} were given");
        return Err(PyTypeError::new_err(message));
    }
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: guaranteed by the caller.
    let (mut label, mut attributes) = unsafe {
        let named = keywords(py, values.offset(positional), keys);
        (positional_label(values, positional), named.collect::<Vec<Detail<'_>>>())
    };
    let known = [(c"name", &mut label.name), (c"filename", &mut label.filename), (c"lineno", &mut label.line)];
    for (name, value) in known {
        let Some(index) = attributes.iter().position(|(attribute, _)| is_keyword(attribute, name)) else { continue };
        if !value.is_null() {
            let name = name.to_string_lossy();
            return Err(PyTypeError::new_err(format!("{function}() got multiple values for argument '{name}'")));
        }
        // The caller holds a reference during the call.
        *value = attributes.remove(index).1.as_ptr();
    }
    if label.name.is_null() {
        return Err(PyTypeError::new_err(format!("{function}() missing 1 required argument: 'name'")));
    }
    // SAFETY: guaranteed by the caller.
    let frame = unsafe { frame_of_label(label)? };
    Ok((frame, attributes_of(py, &attributes)?))
}

fn attributes_of(py: Python<'_>, attributes: &[Detail<'_>]) -> PyResult<PhaseAttributes> {
    if attributes.is_empty() {
        return Ok(PhaseAttributes::Nothing);
    }
    match code_of(attributes) {
        Some(code) => Ok(code),
        None => details_of(py, attributes).map(PhaseAttributes::Json),
    }
}

/// Returns the attributes of a function, if all attributes are such numbers.
fn code_of(attributes: &[Detail<'_>]) -> Option<PhaseAttributes> {
    let (mut bytecode_count, mut inline_depth) = (0, 0);
    for (name, value) in attributes {
        let number = value.cast_exact::<PyInt>().ok()?.extract().ok()?;
        match () {
            () if is_keyword(name, c"bytecode_count") => bytecode_count = number,
            () if is_keyword(name, c"inline_depth") => inline_depth = number,
            () => return None,
        }
    }
    Some(PhaseAttributes::Code { bytecode_count, inline_depth })
}

/// The arguments of a phase's end.
#[derive(Debug, Default)]
pub(super) struct PhaseEnd {
    pub(super) failed: bool,
    /// A JSON object, or nothing.
    pub(super) json: Vec<u8>,
}

/// Reads `*, failed=False, **attributes` of a function.
///
/// # Safety
/// As for [`phase`].
#[cold]
pub(super) unsafe fn phase_end(
    function: &str,
    values: *const Object,
    positional: isize,
    keys: Object,
) -> PyResult<PhaseEnd> {
    if positional != 0 {
        let message = format!("{function}() takes no positional arguments but {positional} were given");
        return Err(PyTypeError::new_err(message));
    }
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: guaranteed by the caller.
    let mut attributes: Vec<Detail<'_>> = unsafe { keywords(py, values, keys) }.collect();
    let mut phase_end = PhaseEnd::default();
    if let Some(index) = attributes.iter().position(|(name, _)| is_keyword(name, c"failed")) {
        phase_end.failed = flag("failed", &attributes.remove(index).1)?;
    }
    if !attributes.is_empty() {
        phase_end.json = details_of(py, &attributes)?;
    }
    Ok(phase_end)
}
