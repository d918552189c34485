//! Writes details as JSON, if that needs no Python code.
//!
//! Python code may release the GIL, and during the finalization of the interpreter a thread that releases it never returns: up to
//! 3.13 its stack is unwound, which is undefined for Rust frames. So plain values, which are the most common, are written here; the
//! Python part writes the others.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// The Python part writes values that are nested more deeply, because it detects cycles.
const MAX_DEPTH: usize = 16;

/// Appends `"name":value`. Returns None if the value is not plain; the caller must then discard the output.
pub(super) fn put_item(out: &mut Vec<u8>, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Option<()> {
    put_text(out, name.cast().ok()?)?;
    out.push(b':');
    put_value(out, value, MAX_DEPTH)
}

fn put_value(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> Option<()> {
    if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        out.extend_from_slice(if value.is_true() { b"true" } else { b"false" });
    } else if let Ok(value) = value.cast_exact::<PyString>() {
        put_text(out, value)?;
    } else if let Ok(value) = value.cast_exact::<PyInt>() {
        put_int(out, value)?;
    } else if let Ok(value) = value.cast_exact::<PyFloat>() {
        put_float(out, value.value())?;
    } else if let Ok(values) = value.cast_exact::<PyList>() {
        put_all(out, values.iter(), depth)?;
    } else if let Ok(values) = value.cast_exact::<PyTuple>() {
        put_all(out, values.iter(), depth)?;
    } else {
        put_dict(out, value.cast_exact().ok()?, depth)?;
    }
    Some(())
}

fn put_text(out: &mut Vec<u8>, text: &Bound<'_, PyString>) -> Option<()> {
    let Ok(text) = text.to_str() else { return None };
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    Some(())
}

fn put_int(out: &mut Vec<u8>, value: &Bound<'_, PyInt>) -> Option<()> {
    let mut overflow = 0;
    // SAFETY: an int, with the GIL held. A value that does not fit sets `overflow`, without an exception.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &raw mut overflow) };
    (overflow == 0).then(|| out.extend_from_slice(number.to_string().as_bytes()))
}

/// Writes a number. Returns `None` for infinities and NaN, which JSON can't represent.
fn put_float(out: &mut Vec<u8>, value: f64) -> Option<()> {
    value.is_finite().then(|| out.extend_from_slice(format!("{value:?}").as_bytes()))
}

fn put_all<'py>(out: &mut Vec<u8>, values: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    out.push(b'[');
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_value(out, &value, depth)?;
    }
    out.push(b']');
    Some(())
}

fn put_dict(out: &mut Vec<u8>, dict: &Bound<'_, PyDict>, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    out.push(b'{');
    for (index, (name, value)) in dict.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_text(out, name.cast_exact().ok()?)?;
        out.push(b':');
        put_value(out, &value, depth)?;
    }
    out.push(b'}');
    Some(())
}
