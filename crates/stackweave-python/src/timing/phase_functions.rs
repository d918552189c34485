//! The methods of `Feed` that record phases, which the interpreter calls directly, without PyO3's wrappers.
//!
//! Hot file: no allocation for a phase without attributes whose name is cached, no lock. The GIL is held, and released only to wait
//! for a buffer of the writer, or by the program's own clock.

use core::ptr;

use pyo3::prelude::*;
use pyo3::types::PyCode;
use pyo3::{Borrowed, ffi};
use stackweave_core::RawFrame;
use stackweave_recording::timing::Outcome;

use super::arguments::{self, PhaseAttributes, PhaseEnd};
use super::phase::{PhaseKind, PyPhase};
use super::state::TimingState;
use crate::callback_guard::guarded;
use crate::capture_functions::captured;
use crate::errors::Error;
use crate::keywords::EVERYTHING;
use crate::recording::{Feed, SpanEffect, admit};

type Object = *mut ffi::PyObject;
type Values = *const Object;

/// # Safety
/// `object` is an instance of `Feed`, and lives for `'a`; the GIL is held.
#[inline]
unsafe fn feed_of<'a>(object: Object) -> &'a Feed {
    // SAFETY: guaranteed by the caller.
    unsafe { Borrowed::from_ptr(Python::assume_attached(), object).cast_unchecked::<Feed>().get() }
}

/// # Safety
/// The calling thread holds the GIL.
#[inline]
unsafe fn none_or_raise(result: PyResult<()>) -> Object {
    match result {
        // SAFETY: guaranteed by the caller; the result is a new reference.
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

/// Returns the recorder of phases, if the start or end of a phase is recorded now. A recording in the wrong state is
/// not an error, because phases are recorded in the middle of other work.
#[inline]
pub(super) fn admitted(feed: &Feed, effect: SpanEffect) -> PyResult<Option<&TimingState>> {
    let state = feed.timing().ok_or_else(no_timing)?;
    Ok(matches!(admit(feed, effect), Ok(Some(_))).then_some(state))
}

#[cold]
fn no_timing() -> PyErr {
    Error::state("phases are recorded by a stackweave.Timing that has started").into()
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn push(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        none_or_raise(match arguments::phase("push", values, positional, keys) {
            Ok((frame, attributes)) => begin(feed_of(object), frame, &attributes),
            Err(error) => Err(error),
        })
    }
}

#[inline]
fn begin(feed: &Feed, frame: RawFrame, attributes: &PhaseAttributes) -> PyResult<()> {
    if let Some(state) = admitted(feed, SpanEffect::Begin)? {
        state.begin(frame, attributes)?;
    }
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn pop(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let feed = feed_of(object);
        if positional == 0 && keys.is_null() {
            return none_or_raise(pop_plain(feed));
        }
        none_or_raise(match arguments::phase_end("pop", values, positional, keys) {
            Ok(phase_end) => pop_with(feed, &phase_end),
            Err(error) => Err(error),
        })
    }
}

#[inline]
fn pop_plain(feed: &Feed) -> PyResult<()> {
    let Some(state) = admitted(feed, SpanEffect::End)? else { return Ok(()) };
    if state.end()? { Ok(()) } else { unmatched(state) }
}

fn pop_with(feed: &Feed, phase_end: &PhaseEnd) -> PyResult<()> {
    let Some(state) = admitted(feed, SpanEffect::End)? else { return Ok(()) };
    if state.end_with(outcome_of(phase_end.failed), &phase_end.json)? { Ok(()) } else { unmatched(state) }
}

pub(super) fn outcome_of(failed: bool) -> Outcome {
    if failed { Outcome::Failed } else { Outcome::Done }
}

#[cold]
fn unmatched(state: &TimingState) -> PyResult<()> {
    let stack = captured(&EVERYTHING)?.stack;
    state.unmatched(caller().unwrap_or_else(|| "an unknown location".to_owned()), stack)
}

/// Returns the current file and line of the calling thread.
fn caller() -> Option<String> {
    // SAFETY: the interpreter is calling, so the GIL is held; the frame is borrowed, and its code is a new reference.
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
pub(super) unsafe extern "C" fn phase(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe { new_phase("phase", object, values, (positional, keys)) }
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn run(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe { new_phase("run", object, values, (positional, keys)) }
}

/// Creates a `PyPhase`.
///
/// # Safety
/// The arguments are those of a method of `Feed`, which the interpreter calls.
unsafe fn new_phase(function: &str, object: Object, values: Values, (positional, keys): (isize, Object)) -> Object {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: guaranteed by the caller.
        let (feed, (frame, attributes)) = unsafe {
            let feed = Borrowed::from_ptr(py, object).cast_unchecked::<Feed>().to_owned();
            (feed, arguments::phase(function, values, positional, keys)?)
        };
        let kind =
            if function == "run" { PhaseKind::Run(attributes.into_json()) } else { PhaseKind::Phase(attributes) };
        Ok(Bound::new(py, PyPhase::new(feed.unbind(), frame, kind))?.into_any().into_ptr())
    })
}
