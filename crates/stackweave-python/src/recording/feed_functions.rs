//! The methods of `Feed` that record events, which the interpreter calls directly, without PyO3's wrappers.
//!
//! Hot file: allocates only the returned object, takes no lock. The GIL is held, and released only to wait for a buffer of the
//! writer.

use core::ptr;

use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};
use stackweave_core::{RawFrame, StackId};
use stackweave_recording::Recorder;

use super::admission::{SpanEffect, admit, is_traced};
use super::arguments::{self, NamedEvent};
use super::feed::Feed;
use super::label_cache::frame_of;
use super::span_type::none;
use crate::callback_guard::guarded;
use crate::capture_functions::captured;
use crate::keywords::EVERYTHING;

type Object = *mut ffi::PyObject;
type Values = *const Object;

/// # Safety
/// `object` is an instance of `Feed`, and lives for `'a`; the GIL is held.
#[inline]
pub(super) unsafe fn feed_of<'a>(object: Object) -> &'a Feed {
    // SAFETY: guaranteed by the caller.
    unsafe { Borrowed::from_ptr(Python::assume_attached(), object).cast_unchecked::<Feed>().get() }
}

#[cold]
pub(super) fn raise(error: PyErr) -> Object {
    guarded(ptr::null_mut(), |_| Err(error))
}

/// # Safety
/// The calling thread holds the GIL.
#[inline]
unsafe fn none_or_raise(result: PyResult<()>) -> Object {
    match result {
        // SAFETY: guaranteed by the caller.
        Ok(()) => unsafe { none() },
        Err(error) => raise(error),
    }
}

pub(super) fn stack_here() -> PyResult<Option<StackId>> {
    Ok(captured(&EVERYTHING)?.stack)
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn begin(object: Object, name: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let result = match frame_of(name) {
            Ok(frame) => begin_plain(feed_of(object), frame),
            Err(error) => Err(error),
        };
        none_or_raise(result)
    }
}

#[inline]
pub(super) fn begin_plain(feed: &Feed, frame: RawFrame) -> PyResult<()> {
    if is_traced(feed) {
        return begin_traced(feed, frame, |recorder| recorder.begin(frame));
    }
    if let Some(recorder) = admit(feed, SpanEffect::Begin)? {
        recorder.begin(frame);
    }
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn end(object: Object, _nothing: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe { none_or_raise(end_plain(feed_of(object))) }
}

/// Begins a span inside a trace.
#[cold]
pub(super) fn begin_traced(feed: &Feed, frame: RawFrame, record: impl FnOnce(&Recorder)) -> PyResult<()> {
    let recorder = feed.recorder()?;
    // SAFETY: the GIL is held, and a trace is active.
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
pub(super) fn end_plain(feed: &Feed) -> PyResult<()> {
    if is_traced(feed) {
        return end_traced(feed);
    }
    if let Some(recorder) = admit(feed, SpanEffect::End)? {
        recorder.end();
    }
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn instant(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let result = match arguments::named_event("instant", values, positional, keys, true) {
            Ok(named) => record_instant(feed_of(object), &named),
            Err(error) => Err(error),
        };
        none_or_raise(result)
    }
}

fn record_instant(feed: &Feed, named: &NamedEvent) -> PyResult<()> {
    let Some(recorder) = admit(feed, SpanEffect::None)? else { return Ok(()) };
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
    // SAFETY: guaranteed by the caller.
    unsafe {
        none_or_raise(match arguments::name_and_number(values, count) {
            Ok((frame, value)) => record(feed_of(object), |recorder| recorder.counter(frame, value)),
            Err(error) => Err(error),
        })
    }
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn traceback(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        none_or_raise(match arguments::sample(values, positional, keys) {
            Ok((stack, weight)) => sample(feed_of(object), stack, weight),
            Err(error) => Err(error),
        })
    }
}

fn sample(feed: &Feed, stack: Option<StackId>, weight: i64) -> PyResult<()> {
    let Some(recorder) = admit(feed, SpanEffect::None)? else { return Ok(()) };
    let stack = match stack {
        Some(stack) => Some(stack),
        None => stack_here()?,
    };
    recorder.sample(stack, weight);
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn allocation(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        none_or_raise(match arguments::allocation(values, positional, keys) {
            Ok(allocated) => allocate(feed_of(object), &allocated),
            Err(error) => Err(error),
        })
    }
}

fn allocate(feed: &Feed, allocated: &arguments::AllocationArguments) -> PyResult<()> {
    let Some(recorder) = admit(feed, SpanEffect::None)? else { return Ok(()) };
    let stack = if allocated.stack { stack_here()? } else { None };
    recorder.allocate(allocated.address, allocated.size, stack);
    Ok(())
}

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn free(object: Object, address: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        none_or_raise(match arguments::unsigned("address", address) {
            Ok(address) => record(feed_of(object), |recorder| recorder.free(address)),
            Err(error) => Err(error),
        })
    }
}

#[inline]
fn record(feed: &Feed, event: impl FnOnce(&Recorder)) -> PyResult<()> {
    if let Some(recorder) = admit(feed, SpanEffect::None)? {
        event(recorder);
    }
    Ok(())
}
