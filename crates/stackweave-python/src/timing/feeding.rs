//! What tells of phases: functions that the interpreter calls without PyO3 in between.
//!
//! Hot file: no allocation for a phase without attributes that was begun lately, no lock. The GIL is held, and given away only
//! to wait until the writer has made room, or by the program's own clock.

use core::ptr;

use pyo3::prelude::*;
use pyo3::types::PyCode;
use pyo3::{Borrowed, ffi};
use stackweave_core::RawFrame;
use stackweave_recording::timing::Outcome;

use super::arguments::{self, Ending, More};
use super::phase::{How, Phase};
use super::state::TimingState;
use crate::called_back::guarded;
use crate::capture_functions::captured;
use crate::errors::Error;
use crate::keywords::EVERYTHING;
use crate::recording::{Feed, What, admit};

type Object = *mut ffi::PyObject;
type Values = *const Object;

/// # Safety
/// `object` is an instance of `Feed`, and stays one for `'a`; the GIL is held.
#[inline]
unsafe fn feed_of<'a>(object: Object) -> &'a Feed {
    // SAFETY: passed on to the caller.
    unsafe { Borrowed::from_ptr(Python::assume_attached(), object).cast_unchecked::<Feed>().get() }
}

/// # Safety
/// The calling thread holds the GIL.
#[inline]
unsafe fn answered(done: PyResult<()>) -> Object {
    match done {
        // SAFETY: passed on to the caller; a reference for who gets it.
        Ok(()) => unsafe {
            let none = ffi::Py_None();
            ffi::Py_INCREF(none);
            none
        },
        Err(error) => raise(error),
    }
}

#[cold]
fn raise(error: PyErr) -> Object {
    guarded(ptr::null_mut(), |_| Err(error))
}

/// What records the phases, if what begins or ends now is recorded. Nobody complains if it is not: phases are told of in the
/// middle of something else.
#[inline]
pub(super) fn admitted(feed: &Feed, what: What) -> PyResult<Option<&TimingState>> {
    let state = feed.timing().ok_or_else(no_timing)?;
    Ok(matches!(admit(feed, what), Ok(Some(_))).then_some(state))
}

#[cold]
fn no_timing() -> PyErr {
    Error::state("phases are recorded by a stackweave.Timing that has begun").into()
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn push(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        answered(match arguments::phase("push", values, positional, keys) {
            Ok((frame, more)) => begin(feed_of(object), frame, &more),
            Err(error) => Err(error),
        })
    }
}

#[inline]
fn begin(feed: &Feed, frame: RawFrame, more: &More) -> PyResult<()> {
    if let Some(state) = admitted(feed, What::Begins)? {
        state.begin(frame, more)?;
    }
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn pop(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        let feed = feed_of(object);
        if positional == 0 && keys.is_null() {
            return answered(pop_plain(feed));
        }
        answered(match arguments::ending("pop", values, positional, keys) {
            Ok(ending) => pop_with(feed, &ending),
            Err(error) => Err(error),
        })
    }
}

#[inline]
fn pop_plain(feed: &Feed) -> PyResult<()> {
    let Some(state) = admitted(feed, What::Ends)? else { return Ok(()) };
    if state.end()? { Ok(()) } else { unmatched(state) }
}

fn pop_with(feed: &Feed, ending: &Ending) -> PyResult<()> {
    let Some(state) = admitted(feed, What::Ends)? else { return Ok(()) };
    if state.end_with(outcome_of(ending.failed), &ending.json)? { Ok(()) } else { unmatched(state) }
}

pub(super) fn outcome_of(failed: bool) -> Outcome {
    if failed { Outcome::Failed } else { Outcome::Done }
}

#[cold]
fn unmatched(state: &TimingState) -> PyResult<()> {
    let stack = captured(&EVERYTHING)?.stack;
    state.unmatched(caller().unwrap_or_else(|| "an unknown place".to_owned()), stack)
}

/// The file and line that the calling thread is at.
fn caller() -> Option<String> {
    // SAFETY: the interpreter is calling, so the GIL is held; the frame is borrowed while it is looked at, and its code is a new
    // reference.
    unsafe {
        let py = Python::assume_attached();
        let frame = ffi::PyEval_GetFrame();
        if frame.is_null() {
            return None;
        }
        let line = ffi::PyFrame_GetLineNumber(frame);
        let code: Bound<'_, PyAny> = Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetCode(frame).cast())?;
        let filename = code.cast::<PyCode>().ok()?.getattr("co_filename").ok()?;
        Some(format!("{filename}:{line}"))
    }
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn frame(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe { made("frame", object, values, (positional, keys)) }
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn run(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe { made("run", object, values, (positional, keys)) }
}

/// # Safety
/// The arguments are those of a method of `Feed`, which the interpreter calls.
unsafe fn made(function: &str, object: Object, values: Values, (positional, keys): (isize, Object)) -> Object {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: passed on to the caller.
        let (feed, (frame, more)) = unsafe {
            let feed = Borrowed::from_ptr(py, object).cast_unchecked::<Feed>().to_owned();
            (feed, arguments::phase(function, values, positional, keys)?)
        };
        let how = if function == "run" { How::Run(more.into_json()) } else { How::Phase(more) };
        Ok(Bound::new(py, Phase::new(feed.unbind(), frame, how))?.into_any().into_ptr())
    })
}
