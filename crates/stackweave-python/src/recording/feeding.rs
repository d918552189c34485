//! What a recording is fed by: functions that the interpreter calls without PyO3 in between.
//!
//! Hot file: no allocation but for what is returned, no lock. The GIL is held, and given away only to wait until the writer
//! has made room.

use core::ptr;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{Borrowed, ffi};
use stackweave_core::{RawFrame, StackId};
use stackweave_recording::Recorder;

use super::admission::{What, admit, is_traced};
use super::arguments::{self, Named};
use super::feed::Feed;
use super::label_cache::{self, frame_of};
use super::span_object::{self, How, SpanObject};
use super::span_type::none;
use crate::called_back::guarded;
use crate::capture_functions::captured;
use crate::keywords::EVERYTHING;

type Object = *mut ffi::PyObject;
type Values = *const Object;

/// # Safety
/// `object` is an instance of `Feed`, and stays one for `'a`; the GIL is held.
#[inline]
unsafe fn feed_of<'a>(object: Object) -> &'a Feed {
    // SAFETY: passed on to the caller.
    unsafe { Borrowed::from_ptr(Python::assume_attached(), object).cast_unchecked::<Feed>().get() }
}

#[cold]
fn raise(error: PyErr) -> Object {
    guarded(ptr::null_mut(), |_| Err(error))
}

/// # Safety
/// The calling thread holds the GIL.
#[inline]
unsafe fn answered(done: PyResult<()>) -> Object {
    match done {
        // SAFETY: passed on to the caller.
        Ok(()) => unsafe { none() },
        Err(error) => raise(error),
    }
}

fn stack_here() -> PyResult<Option<StackId>> {
    Ok(captured(&EVERYTHING)?.stack)
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn begin(object: Object, name: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        let begun = match frame_of(name) {
            Ok(frame) => begin_plain(feed_of(object), frame),
            Err(error) => Err(error),
        };
        answered(begun)
    }
}

#[inline]
fn begin_plain(feed: &Feed, frame: RawFrame) -> PyResult<()> {
    if is_traced(feed) {
        return begin_traced(feed, frame, |recorder| recorder.begin(frame));
    }
    if let Some(recorder) = admit(feed, What::Begins)? {
        recorder.begin(frame);
    }
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn end(object: Object, _nothing: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe { answered(end_plain(feed_of(object))) }
}

/// A span begins among calls.
#[cold]
fn begin_traced(feed: &Feed, frame: RawFrame, record: impl FnOnce(&Recorder)) -> PyResult<()> {
    let recorder = feed.recorder()?;
    // SAFETY: the GIL is held, and what is traced has a trace.
    unsafe { stackweave_trace::begin_span(frame, || record(recorder)) };
    Ok(())
}

#[cold]
fn end_traced(feed: &Feed) -> PyResult<()> {
    let recorder = feed.recorder()?;
    // SAFETY: as above.
    unsafe { stackweave_trace::end_span(|| recorder.end()) };
    Ok(())
}

#[inline]
fn end_plain(feed: &Feed) -> PyResult<()> {
    if is_traced(feed) {
        return end_traced(feed);
    }
    if let Some(recorder) = admit(feed, What::Ends)? {
        recorder.end();
    }
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn span(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        if positional == 1 && keys.is_null() {
            let known = label_cache::known_span(*values, object);
            if !known.is_null() {
                return known;
            }
        }
        let named = match arguments::named("span", values, positional, keys, false) {
            Ok(named) => named,
            Err(error) => return raise(error),
        };
        let is_plain = keys.is_null() && feed_of(object).recording().is_some();
        let how = How { stack: named.stack, quiet: false };
        let py = Python::assume_attached();
        let details = named.details.map_or(ptr::null_mut(), |json| PyBytes::new(py, &json).into_ptr());
        let made = span_object::allocate(object, named.frame, details, how);
        if is_plain && !made.is_null() {
            label_cache::keep_span(*values, made);
        }
        made
    }
}

/// The span begins. False with an exception set if the program should not have come so far.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
pub(super) unsafe fn begin_span(span: &SpanObject) -> bool {
    // SAFETY: a span refers to a `Feed`.
    let feed = unsafe { feed_of(span.feed) };
    let begun = if span.details.is_null() && !span.how.stack {
        begin_plain(feed, span.frame)
    } else {
        // SAFETY: passed on to the caller.
        unsafe { begin_with_more(feed, span) }
    };
    match begun {
        Err(error) if !span.how.quiet => {
            raise(error);
            false
        }
        _ => true,
    }
}

/// # Safety
/// The calling thread holds the GIL.
unsafe fn begin_with_more(feed: &Feed, span: &SpanObject) -> PyResult<()> {
    let is_traced = is_traced(feed);
    let recorder = if is_traced { Some(feed.recorder()?) } else { admit(feed, What::Begins)? };
    let Some(recorder) = recorder else { return Ok(()) };
    let stack = if span.how.stack { stack_here()? } else { None };
    let record = |recorder: &Recorder| {
        if span.details.is_null() {
            return recorder.begin_at(span.frame, stack);
        }
        // SAFETY: what `arguments::named` has made, and the span refers to: bytes. The GIL is held.
        let details =
            unsafe { Borrowed::from_ptr(Python::assume_attached(), span.details).cast_unchecked::<PyBytes>() };
        recorder.begin_with(span.frame, stack, details.as_bytes());
    };
    if is_traced {
        return begin_traced(feed, span.frame, record);
    }
    record(recorder);
    Ok(())
}

/// The span ends. Nobody complains: it may end anywhere, and at any time.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
pub(super) unsafe fn end_span(span: &SpanObject) {
    // SAFETY: a span refers to a `Feed`.
    let ended = end_plain(unsafe { feed_of(span.feed) });
    drop(ended);
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn instant(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        let happened = match arguments::named("instant", values, positional, keys, true) {
            Ok(named) => happens(feed_of(object), &named),
            Err(error) => Err(error),
        };
        answered(happened)
    }
}

fn happens(feed: &Feed, named: &Named) -> PyResult<()> {
    let Some(recorder) = admit(feed, What::Happens)? else { return Ok(()) };
    let stack = if named.stack { stack_here()? } else { None };
    match &named.details {
        Some(details) => recorder.instant_with(named.frame, stack, details),
        None => recorder.instant(named.frame, stack),
    }
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn counter(object: Object, values: *mut Object, count: isize) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        answered(match arguments::name_and_number(values, count) {
            Ok((frame, value)) => record(feed_of(object), |recorder| recorder.counter(frame, value)),
            Err(error) => Err(error),
        })
    }
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn traceback(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        answered(match arguments::weighted(values, positional, keys) {
            Ok((given, weight)) => sample(feed_of(object), given, weight),
            Err(error) => Err(error),
        })
    }
}

fn sample(feed: &Feed, given: Option<StackId>, weight: i64) -> PyResult<()> {
    let Some(recorder) = admit(feed, What::Happens)? else { return Ok(()) };
    let stack = match given {
        Some(stack) => Some(stack),
        None => stack_here()?,
    };
    recorder.sample(stack, weight);
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn allocation(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        answered(match arguments::allocated(values, positional, keys) {
            Ok(allocated) => allocate(feed_of(object), &allocated),
            Err(error) => Err(error),
        })
    }
}

fn allocate(feed: &Feed, allocated: &arguments::Allocated) -> PyResult<()> {
    let Some(recorder) = admit(feed, What::Happens)? else { return Ok(()) };
    let stack = if allocated.stack { stack_here()? } else { None };
    recorder.allocate(allocated.address, allocated.size, stack);
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn free(object: Object, address: Object) -> Object {
    // SAFETY: passed on to the caller.
    unsafe {
        answered(match arguments::unsigned("address", address) {
            Ok(address) => record(feed_of(object), |recorder| recorder.free(address)),
            Err(error) => Err(error),
        })
    }
}

#[inline]
fn record(feed: &Feed, event: impl FnOnce(&Recorder)) -> PyResult<()> {
    if let Some(recorder) = admit(feed, What::Happens)? {
        event(recorder);
    }
    Ok(())
}
