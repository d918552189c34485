//! The method `span` of `Feed`, and the start and end of spans.
//!
//! Hot file: allocates only the returned object, takes no lock. The GIL is held, and released only to wait for a buffer of the
//! writer.

use core::ptr;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{Borrowed, ffi};
use stackweave_recording::Recorder;

use super::admission::{SpanEffect, admit, is_traced};
use super::arguments;
use super::feed::Feed;
use super::feed_functions::{begin_plain, begin_traced, end_plain, feed_of, raise, stack_here};
use super::label_cache;
use super::span_object::{self, SpanObject, SpanOptions};

type Object = *mut ffi::PyObject;
type Values = *const Object;

/// # Safety
/// Called by the interpreter, with a `Feed`.
pub(super) unsafe extern "C" fn span(object: Object, values: Values, positional: isize, keys: Object) -> Object {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if positional == 1 && keys.is_null() {
            let cached = label_cache::cached_span(*values, object);
            if !cached.is_null() {
                return cached;
            }
        }
        let named = match arguments::named_event("span", values, positional, keys, false) {
            Ok(named) => named,
            Err(error) => return raise(error),
        };
        let is_plain = keys.is_null() && feed_of(object).recording().is_some();
        let options = SpanOptions { stack: named.stack, ignore_errors: false };
        let py = Python::assume_attached();
        let details = named.details.map_or(ptr::null_mut(), |json| PyBytes::new(py, &json).into_ptr());
        let span = span_object::allocate(object, named.frame, details, options);
        if is_plain && !span.is_null() {
            label_cache::cache_span(*values, span);
        }
        span
    }
}

/// Begins a span. Returns false with an exception set if the recording is in the wrong state.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
pub(super) unsafe fn begin_span(span: &SpanObject) -> bool {
    // SAFETY: a span refers to a `Feed`.
    let feed = unsafe { feed_of(span.feed) };
    let result = if span.details.is_null() && !span.options.stack {
        begin_plain(feed, span.frame)
    } else {
        // SAFETY: guaranteed by the caller.
        unsafe { begin_with_details(feed, span) }
    };
    match result {
        Err(error) if !span.options.ignore_errors => {
            raise(error);
            false
        }
        _ => true,
    }
}

/// # Safety
/// The calling thread holds the GIL.
unsafe fn begin_with_details(feed: &Feed, span: &SpanObject) -> PyResult<()> {
    let is_traced = is_traced(feed);
    let recorder = if is_traced { Some(feed.recorder()?) } else { admit(feed, SpanEffect::Begin)? };
    let Some(recorder) = recorder else { return Ok(()) };
    let stack = if span.options.stack { stack_here()? } else { None };
    let record = |recorder: &Recorder| {
        if span.details.is_null() {
            return recorder.begin_at(span.frame, stack);
        }
        // SAFETY: the span refers to the bytes that `arguments::named_event` has created. The GIL is held.
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

/// Ends a span. Errors are ignored, because a span may end at any point.
///
/// # Safety
/// The calling thread holds the GIL.
#[inline]
pub(super) unsafe fn end_span(span: &SpanObject) {
    // SAFETY: a span refers to a `Feed`.
    let result = end_plain(unsafe { feed_of(span.feed) });
    drop(result);
}
