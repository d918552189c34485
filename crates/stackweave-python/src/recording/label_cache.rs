//! Names, files and lines as Python gives them, to the frames that stand for them.
//!
//! The names in a program are few, and mostly the same objects each time: constants, and what code objects hold. So one is
//! first looked for by the addresses of its strings. These are kept while the addresses are, so that no others can have them;
//! only so many are.
//!
//! Hot file: no allocation and no lock for a name that was used lately. The GIL is held.

use core::cell::UnsafeCell;
use core::ptr;
use std::borrow::Cow;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
use stackweave_core::RawFrame;

use super::span_object::SpanObject;
use crate::errors::Error;
use crate::keywords::type_name;

type Object = *mut ffi::PyObject;

/// A power of two.
const SLOTS: usize = 1024;
/// Longer names and files, in UTF-8, are not kept.
const LONGEST: usize = 1024;

/// Where a label is, as Python says it: `filename` and `line` are null where they are left out.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) name: Object,
    pub(crate) filename: Object,
    pub(crate) line: Object,
}

#[derive(Clone, Copy)]
struct Known {
    /// An owned reference, or null if nothing is known here.
    name: Object,
    /// An owned reference, or null if no file was named.
    filename: Object,
    line: u32,
    frame: RawFrame,
    /// A span of this name, without details: an owned reference, or null. Since it has no state, it can be used again.
    span: *mut SpanObject,
}

const NO_FRAME: RawFrame = match RawFrame::from_bits(0) {
    Some(frame) => frame,
    None => unreachable!(),
};
const NOTHING: Known =
    Known { name: ptr::null_mut(), filename: ptr::null_mut(), line: 0, frame: NO_FRAME, span: ptr::null_mut() };

struct Cache(UnsafeCell<[Known; SLOTS]>);

// SAFETY: only touched with the GIL held, and given away in no reference.
unsafe impl Sync for Cache {}

static CACHE: Cache = Cache(UnsafeCell::new([NOTHING; SLOTS]));

/// Returns the frame that stands for this name.
///
/// # Safety
/// The calling thread holds the GIL, and `name` is an object.
#[inline]
pub(crate) unsafe fn frame_of(name: Object) -> PyResult<RawFrame> {
    // SAFETY: passed on to the caller.
    unsafe { frame_at(Place { name, filename: ptr::null_mut(), line: ptr::null_mut() }) }
}

/// Returns the frame that stands for this place.
///
/// # Safety
/// The calling thread holds the GIL; `place` has objects, or null where that is allowed.
#[inline]
pub(crate) unsafe fn frame_at(place: Place) -> PyResult<RawFrame> {
    // SAFETY: passed on to the caller; slots are read and written with the GIL held only.
    unsafe {
        let line = line_of(place.line)?;
        let known = slot_of(place.name, place.filename, line).read();
        if known.name == place.name && known.filename == place.filename && known.line == line {
            return Ok(known.frame);
        }
        look_up(place, line)
    }
}

/// # Safety
/// The calling thread holds the GIL; `line` is an object or null.
#[inline]
unsafe fn line_of(line: Object) -> PyResult<u32> {
    if line.is_null() {
        return Ok(0);
    }
    let mut overflow = 0;
    // SAFETY: an int, as is checked first. What does not fit is said by `overflow`, without an exception.
    let number = unsafe {
        if ffi::PyLong_Check(line) == 0 {
            return Err(no_line(line));
        }
        ffi::PyLong_AsLongAndOverflow(line, &raw mut overflow)
    };
    match u32::try_from(number) {
        Ok(number) if overflow == 0 => Ok(number),
        // SAFETY: passed on to the caller.
        _ => Err(unsafe { no_line(line) }),
    }
}

/// # Safety
/// The calling thread holds the GIL, and `line` is an object.
#[cold]
unsafe fn no_line(line: Object) -> PyErr {
    // SAFETY: passed on to the caller.
    let line = unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), line) };
    if line.is_instance_of::<PyInt>() {
        return PyValueError::new_err(format!("line must be from 0 to 2**32 - 1, but is {line}"));
    }
    PyTypeError::new_err(format!("line must be an int, not {}", type_name(&line)))
}

#[inline]
fn slot_of(name: Object, filename: Object, line: u32) -> *mut Known {
    // Objects lie 16 bytes apart at least.
    let (name, filename) = (name as usize >> 4, filename as usize >> 4);
    let mixed = name ^ name >> 8 ^ filename ^ (line as usize).wrapping_mul(0x9e37);
    // SAFETY: inside the array.
    unsafe { CACHE.0.get().cast::<Known>().add(mixed % SLOTS) }
}

/// # Safety
/// As for [`frame_at`].
#[cold]
unsafe fn look_up(place: Place, line: u32) -> PyResult<RawFrame> {
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: passed on to the caller.
    let (name, filename) = unsafe {
        let name: Bound<'_, PyAny> = Bound::from_borrowed_ptr(py, place.name);
        (name, Bound::from_borrowed_ptr_or_opt(py, place.filename))
    };
    let text = text_of("name", &name)?;
    let file = filename.as_ref().map(|filename| text_of("filename", filename)).transpose()?;
    let frame = stackweave_store::label(&text, file.as_deref().unwrap_or_default(), line);
    let frame = frame.ok_or_else(|| Error::other("no memory for a new name"))?;
    let is_short = text.len() + file.as_ref().map_or(0, |file| file.len()) <= LONGEST;
    let is_plain = |object: &Bound<'_, PyAny>| object.is_exact_instance_of::<PyString>();
    if is_short && is_plain(&name) && filename.as_ref().is_none_or(is_plain) {
        let slot = slot_of(place.name, place.filename, line);
        let filename = filename.map_or(ptr::null_mut(), Bound::into_ptr);
        // SAFETY: the GIL is held, and both references are given away.
        unsafe { put(slot, Known { name: name.into_ptr(), filename, line, frame, span: ptr::null_mut() }) };
    }
    Ok(frame)
}

fn text_of<'a>(what: &str, object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, str>> {
    match object.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy()),
        Err(_) => Err(PyTypeError::new_err(format!("{what} must be a str, not {}", type_name(object)))),
    }
}

/// # Safety
/// The GIL is held; `slot` is one of the cache's, and `known` has references of its own.
unsafe fn put(slot: *mut Known, known: Known) {
    // SAFETY: passed on to the caller. What was there before goes when the slot is in order again: the end of a span can be
    // that of its recording, which may run any code.
    unsafe {
        let before = slot.replace(known);
        ffi::Py_XDECREF(before.name);
        ffi::Py_XDECREF(before.filename);
        ffi::Py_XDECREF(before.span.cast());
    }
}

/// The slot of a name without file and line, and what is known there if it is of this name.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
unsafe fn known_name(name: Object) -> Option<(*mut Known, Known)> {
    let slot = slot_of(name, ptr::null_mut(), 0);
    // SAFETY: one of the cache's, read with the GIL held.
    let known = unsafe { slot.read() };
    (known.name == name && known.filename.is_null() && known.line == 0).then_some((slot, known))
}

/// Returns the span of this name and recording that was kept, as a new reference, or null.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
pub(super) unsafe fn known_span(name: Object, feed: Object) -> Object {
    // SAFETY: the GIL is held, and what is kept is alive.
    unsafe {
        match known_name(name) {
            Some((_, Known { span, .. })) if !span.is_null() && (*span).feed == feed => {
                ffi::Py_INCREF(span.cast());
                span.cast()
            }
            _ => ptr::null_mut(),
        }
    }
}

/// Keeps a span without details for its name, if the name is kept.
///
/// # Safety
/// The calling thread holds the GIL; `span` is a span of that name.
pub(super) unsafe fn keep_span(name: Object, span: Object) {
    // SAFETY: the GIL is held; both references are new.
    unsafe {
        if let Some((slot, known)) = known_name(name) {
            ffi::Py_INCREF(name);
            ffi::Py_INCREF(span);
            put(slot, Known { span: span.cast(), ..known });
        }
    }
}

/// Forgets all names, files and spans, and so the references to them.
pub(super) fn clear(_py: Python<'_>) {
    for index in 0..SLOTS {
        // SAFETY: inside the array, and the GIL is held.
        unsafe { put(CACHE.0.get().cast::<Known>().add(index), NOTHING) };
    }
}
