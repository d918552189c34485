//! Maps names, files and lines that Python passes to frames.
//!
//! A program uses few names, and mostly the same string objects each time: constants, and names of code objects. So the cache looks
//! up the addresses of the strings first. It keeps references to a limited number of strings, so that no other objects can have
//! their addresses.
//!
//! Hot file: no allocation and no lock for a cached name. The GIL is held.

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

/// The size of the cache, a power of two.
const SLOTS: usize = 1024;
/// Names and files whose UTF-8 text is longer are not cached.
const MAX_LENGTH: usize = 1024;

/// The arguments that Python passes for a label; `filename` and `line` are null if they are omitted.
#[derive(Clone, Copy)]
pub(crate) struct LabelArguments {
    pub(crate) name: Object,
    pub(crate) filename: Object,
    pub(crate) line: Object,
}

#[derive(Clone, Copy)]
struct CachedLabel {
    /// An owned reference, or null in an empty slot.
    name: Object,
    /// An owned reference, or null if the label has no file.
    filename: Object,
    line: u32,
    frame: RawFrame,
    /// An owned reference to a span of this name without details, or null. A span has no state, so it can be reused.
    span: *mut SpanObject,
}

const NO_FRAME: RawFrame = match RawFrame::from_bits(0) {
    Some(frame) => frame,
    None => unreachable!(),
};
const EMPTY: CachedLabel =
    CachedLabel { name: ptr::null_mut(), filename: ptr::null_mut(), line: 0, frame: NO_FRAME, span: ptr::null_mut() };

struct LabelCache(UnsafeCell<[CachedLabel; SLOTS]>);

// SAFETY: accessed only with the GIL held, and no reference to it is returned.
unsafe impl Sync for LabelCache {}

static CACHE: LabelCache = LabelCache(UnsafeCell::new([EMPTY; SLOTS]));

/// Returns the frame of a name.
///
/// # Safety
/// The calling thread holds the GIL, and `name` is an object.
#[inline]
pub(crate) unsafe fn frame_of(name: Object) -> PyResult<RawFrame> {
    // SAFETY: guaranteed by the caller.
    unsafe { frame_of_label(LabelArguments { name, filename: ptr::null_mut(), line: ptr::null_mut() }) }
}

/// Returns the frame of a label.
///
/// # Safety
/// The calling thread holds the GIL; `label` has objects, or null where that is allowed.
#[inline]
pub(crate) unsafe fn frame_of_label(label: LabelArguments) -> PyResult<RawFrame> {
    // SAFETY: guaranteed by the caller; slots are read and written only with the GIL held.
    unsafe {
        let line = line_of(label.line)?;
        let cached = slot_of(label.name, label.filename, line).read();
        if cached.name == label.name && cached.filename == label.filename && cached.line == line {
            return Ok(cached.frame);
        }
        intern_label(label, line)
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
    // SAFETY: the type is checked first. A value that does not fit sets `overflow`, without an exception.
    let number = unsafe {
        if ffi::PyLong_Check(line) == 0 {
            return Err(not_a_line(line));
        }
        ffi::PyLong_AsLongAndOverflow(line, &raw mut overflow)
    };
    match u32::try_from(number) {
        Ok(number) if overflow == 0 => Ok(number),
        // SAFETY: guaranteed by the caller.
        _ => Err(unsafe { not_a_line(line) }),
    }
}

/// # Safety
/// The calling thread holds the GIL, and `line` is an object.
#[cold]
unsafe fn not_a_line(line: Object) -> PyErr {
    // SAFETY: guaranteed by the caller.
    let line = unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), line) };
    if line.is_instance_of::<PyInt>() {
        return PyValueError::new_err(format!("line must be from 0 to 2**32 - 1, but is {line}"));
    }
    PyTypeError::new_err(format!("line must be an int, not {}", type_name(&line)))
}

#[inline]
fn slot_of(name: Object, filename: Object, line: u32) -> *mut CachedLabel {
    // The addresses of objects are multiples of 16.
    let (name, filename) = (name as usize >> 4, filename as usize >> 4);
    let mixed = name ^ name >> 8 ^ filename ^ (line as usize).wrapping_mul(0x9e37);
    // SAFETY: inside the array.
    unsafe { CACHE.0.get().cast::<CachedLabel>().add(mixed % SLOTS) }
}

/// # Safety
/// As for [`frame_of_label`].
#[cold]
unsafe fn intern_label(label: LabelArguments, line: u32) -> PyResult<RawFrame> {
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: guaranteed by the caller.
    let (name, filename) = unsafe {
        let name: Bound<'_, PyAny> = Bound::from_borrowed_ptr(py, label.name);
        (name, Bound::from_borrowed_ptr_or_opt(py, label.filename))
    };
    let text = text_of("name", &name)?;
    let file = filename.as_ref().map(|filename| text_of("filename", filename)).transpose()?;
    let frame = stackweave_store::label(&text, file.as_deref().unwrap_or_default(), line);
    let frame = frame.ok_or_else(|| Error::other("no memory for a new name"))?;
    let is_short = text.len() + file.as_ref().map_or(0, |file| file.len()) <= MAX_LENGTH;
    let is_plain = |object: &Bound<'_, PyAny>| object.is_exact_instance_of::<PyString>();
    if is_short && is_plain(&name) && filename.as_ref().is_none_or(is_plain) {
        let slot = slot_of(label.name, label.filename, line);
        let filename = filename.map_or(ptr::null_mut(), Bound::into_ptr);
        // SAFETY: the GIL is held, and the slot takes over both references.
        unsafe {
            replace_slot(slot, CachedLabel { name: name.into_ptr(), filename, line, frame, span: ptr::null_mut() });
        }
    }
    Ok(frame)
}

fn text_of<'a>(argument: &str, object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, str>> {
    match object.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy()),
        Err(_) => Err(PyTypeError::new_err(format!("{argument} must be a str, not {}", type_name(object)))),
    }
}

/// # Safety
/// The GIL is held; `slot` is a slot of the cache, and `cached` owns its references.
unsafe fn replace_slot(slot: *mut CachedLabel, cached: CachedLabel) {
    // SAFETY: guaranteed by the caller. The previous references are released after the slot was replaced, because freeing a span can
    // free its recording, which may run any code.
    unsafe {
        let before = slot.replace(cached);
        ffi::Py_XDECREF(before.name);
        ffi::Py_XDECREF(before.filename);
        ffi::Py_XDECREF(before.span.cast());
    }
}

/// Returns the slot of a name without file and line, if it caches this name.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
unsafe fn cached_name(name: Object) -> Option<(*mut CachedLabel, CachedLabel)> {
    let slot = slot_of(name, ptr::null_mut(), 0);
    // SAFETY: a slot of the cache, read with the GIL held.
    let cached = unsafe { slot.read() };
    (cached.name == name && cached.filename.is_null() && cached.line == 0).then_some((slot, cached))
}

/// Returns a new reference to the cached span of this name and recording, or null.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
pub(super) unsafe fn cached_span(name: Object, feed: Object) -> Object {
    // SAFETY: the GIL is held, and cached objects are alive.
    unsafe {
        match cached_name(name) {
            Some((_, CachedLabel { span, .. })) if !span.is_null() && (*span).feed == feed => {
                ffi::Py_INCREF(span.cast());
                span.cast()
            }
            _ => ptr::null_mut(),
        }
    }
}

/// Caches a span without details, if its name is cached.
///
/// # Safety
/// The calling thread holds the GIL; `span` is a span of that name.
pub(super) unsafe fn cache_span(name: Object, span: Object) {
    // SAFETY: the GIL is held; both references are new.
    unsafe {
        if let Some((slot, cached)) = cached_name(name) {
            ffi::Py_INCREF(name);
            ffi::Py_INCREF(span);
            replace_slot(slot, CachedLabel { span: span.cast(), ..cached });
        }
    }
}

/// Clears the cache, and releases its references.
pub(super) fn clear(_py: Python<'_>) {
    for index in 0..SLOTS {
        // SAFETY: inside the array, and the GIL is held.
        unsafe { replace_slot(CACHE.0.get().cast::<CachedLabel>().add(index), EMPTY) };
    }
}
