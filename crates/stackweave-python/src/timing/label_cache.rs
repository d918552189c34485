//! Names, files and lines as Python gives them, to the frames that stand for them.
//!
//! The phases of a program are few, and their names and files mostly the same objects each time: constants, and what code
//! objects hold. So one is first looked for by the addresses of its strings. These are kept while the addresses are, so
//! that no others can have them; only so many are.
//!
//! Hot file: no allocation and no lock for a phase that was begun lately. The GIL is held.

use core::cell::UnsafeCell;
use core::ptr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
use stackweave_core::RawFrame;

use crate::errors::Error;
use crate::keywords::type_name;

type Object = *mut ffi::PyObject;

/// A power of two.
const PLACES: usize = 1024;
/// Longer names, in UTF-8, are not kept.
const LONGEST: usize = 1024;

/// Where a phase is, as Python says it: `filename` and `line` are null where they are left out.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) name: Object,
    pub(super) filename: Object,
    pub(super) line: Object,
}

#[derive(Clone, Copy)]
struct Known {
    /// An owned reference, or null if nothing is known here.
    name: Object,
    /// An owned reference, or null if no file was named.
    filename: Object,
    line: u32,
    frame: RawFrame,
}

const NO_FRAME: RawFrame = match RawFrame::from_bits(0) {
    Some(frame) => frame,
    None => unreachable!(),
};
const NOTHING: Known = Known { name: ptr::null_mut(), filename: ptr::null_mut(), line: 0, frame: NO_FRAME };

struct Cache(UnsafeCell<[Known; PLACES]>);

// SAFETY: only touched with the GIL held, and given away in no reference.
unsafe impl Sync for Cache {}

static CACHE: Cache = Cache(UnsafeCell::new([NOTHING; PLACES]));

/// The frame that stands for this place.
///
/// # Safety
/// The calling thread holds the GIL; `place` has objects, or null where that is allowed.
#[inline]
pub(super) unsafe fn frame_of(place: Place) -> PyResult<RawFrame> {
    // SAFETY: passed on to the caller.
    unsafe {
        let line = line_of(place.line)?;
        let known = slot_of(place, line).read();
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
    // SAFETY: an int, as is asked first. What does not fit is told by `overflow`, without an exception.
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
fn slot_of(place: Place, line: u32) -> *mut Known {
    // Objects lie 16 bytes apart at least.
    let (name, filename) = (place.name as usize >> 4, place.filename as usize >> 4);
    let mixed = name ^ name >> 8 ^ filename ^ (line as usize).wrapping_mul(0x9e37);
    // SAFETY: inside the array.
    unsafe { CACHE.0.get().cast::<Known>().add(mixed % PLACES) }
}

/// # Safety
/// As for [`frame_of`].
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
        let filename = filename.map_or(ptr::null_mut(), Bound::into_ptr);
        // SAFETY: the GIL is held, and both references are given away.
        unsafe { put(slot_of(place, line), Known { name: name.into_ptr(), filename, line, frame }) };
    }
    Ok(frame)
}

fn text_of<'a>(what: &str, object: &'a Bound<'_, PyAny>) -> PyResult<std::borrow::Cow<'a, str>> {
    match object.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy()),
        Err(_) => Err(PyTypeError::new_err(format!("{what} must be a str, not {}", type_name(object)))),
    }
}

/// # Safety
/// The GIL is held; `slot` is one of the cache's, and `known` has references of its own.
unsafe fn put(slot: *mut Known, known: Known) {
    // SAFETY: passed on to the caller. What was there before goes when the slot is in order again.
    unsafe {
        let before = slot.replace(known);
        ffi::Py_XDECREF(before.name);
        ffi::Py_XDECREF(before.filename);
    }
}

/// Forgets all places, and so the references to their strings.
pub(crate) fn clear(_py: Python<'_>) {
    for index in 0..PLACES {
        // SAFETY: inside the array, and the GIL is held.
        unsafe { put(CACHE.0.get().cast::<Known>().add(index), NOTHING) };
    }
}
