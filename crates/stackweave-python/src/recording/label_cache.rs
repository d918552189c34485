//! Names as Python gives them, to the frames that stand for them.
//!
//! The names in a program are few, and mostly constants: the same objects each time. So one is first looked for by the
//! address of its string. A string is kept while its address is, so that no other one can have it; only so many are.
//!
//! Hot file: no allocation and no lock for a name that was used lately. The GIL is held.

use core::cell::UnsafeCell;
use core::ptr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use stackweave_core::RawFrame;

use super::span_object::SpanObject;
use crate::errors::Error;
use crate::keywords::type_name;

/// A power of two.
const PLACES: usize = 256;
/// Longer names, in UTF-8, are not kept.
const LONGEST: usize = 1024;

#[derive(Clone, Copy)]
struct Known {
    /// An owned reference, or null.
    name: *mut ffi::PyObject,
    frame: RawFrame,
    /// A span of this name, without details: an owned reference, or null. Since it has no state, it can be used again.
    span: *mut SpanObject,
}

const NOTHING: Known = Known { name: ptr::null_mut(), frame: NO_FRAME, span: ptr::null_mut() };

struct Cache(UnsafeCell<[Known; PLACES]>);

// SAFETY: only touched with the GIL held, and given away in no reference.
unsafe impl Sync for Cache {}

const NO_FRAME: RawFrame = match RawFrame::from_bits(0) {
    Some(frame) => frame,
    None => unreachable!(),
};

static CACHE: Cache = Cache(UnsafeCell::new([NOTHING; PLACES]));

/// The frame that stands for this name.
///
/// # Safety
/// The calling thread holds the GIL, and `name` is an object.
#[inline]
pub(crate) unsafe fn frame_of(name: *mut ffi::PyObject) -> PyResult<RawFrame> {
    // SAFETY: the GIL is held.
    let known = unsafe { place_of(name).read() };
    if known.name == name {
        return Ok(known.frame);
    }
    // SAFETY: passed on to the caller.
    unsafe { look_up(name) }
}

/// # Safety
/// The calling thread holds the GIL.
#[inline]
unsafe fn place_of(name: *mut ffi::PyObject) -> *mut Known {
    let address = name as usize;
    // Objects lie 16 bytes apart at least.
    let index = (address >> 4 ^ address >> 12) % PLACES;
    // SAFETY: inside the array.
    unsafe { CACHE.0.get().cast::<Known>().add(index) }
}

/// # Safety
/// As for [`frame_of`].
#[cold]
unsafe fn look_up(name: *mut ffi::PyObject) -> PyResult<RawFrame> {
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: passed on to the caller.
    let object = unsafe { Bound::from_borrowed_ptr(py, name) };
    let Ok(text) = object.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!("name must be a str, not {}", type_name(&object))));
    };
    let text = text.to_string_lossy();
    let frame = stackweave_store::label(&text, "", 0);
    let frame = frame.ok_or_else(|| Error::other("no memory for a new name"))?;
    if text.len() <= LONGEST && object.is_exact_instance_of::<PyString>() {
        keep(object.into_ptr(), frame);
    }
    Ok(frame)
}

/// Takes the reference over.
fn keep(name: *mut ffi::PyObject, frame: RawFrame) {
    // SAFETY: the GIL is held.
    unsafe { put(place_of(name), Known { name, frame, span: ptr::null_mut() }) };
}

/// # Safety
/// The GIL is held; `place` is one of the cache's, and `known` has references of its own.
unsafe fn put(place: *mut Known, known: Known) {
    // SAFETY: passed on to the caller. What was there before goes when the place is in order again: the end of a span can be
    // that of its recording, which may run any code.
    unsafe {
        let before = place.replace(known);
        ffi::Py_XDECREF(before.name);
        ffi::Py_XDECREF(before.span.cast());
    }
}

/// The span of this name and recording that was kept, as a new reference, or null.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
pub(super) unsafe fn known_span(name: *mut ffi::PyObject, feed: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the GIL is held, and what is kept is alive.
    unsafe {
        let Known { name: known, span, .. } = place_of(name).read();
        if known != name || span.is_null() || (*span).feed != feed {
            return ptr::null_mut();
        }
        ffi::Py_INCREF(span.cast());
        span.cast()
    }
}

/// Keeps a span without details for its name, if the name is kept.
///
/// # Safety
/// The calling thread holds the GIL; `span` is a span of that name.
pub(super) unsafe fn keep_span(name: *mut ffi::PyObject, span: *mut ffi::PyObject) {
    // SAFETY: the GIL is held; both references are new.
    unsafe {
        let place = place_of(name);
        let Known { name: known, frame, .. } = place.read();
        if known == name {
            ffi::Py_INCREF(name);
            ffi::Py_INCREF(span);
            put(place, Known { name, frame, span: span.cast() });
        }
    }
}

/// Forgets all names and spans, and so the references to them.
pub(super) fn clear(_py: Python<'_>) {
    for index in 0..PLACES {
        // SAFETY: inside the array, and the GIL is held.
        unsafe { put(CACHE.0.get().cast::<Known>().add(index), NOTHING) };
    }
}
