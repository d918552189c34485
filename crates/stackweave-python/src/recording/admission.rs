//! Decides whether an event is recorded.
//!
//! Hot file: no allocation and no lock unless the recording was paused before. The GIL is held.

use pyo3::prelude::*;
use stackweave_recording::Recorder;

use super::feed::Feed;
use super::feed_mode::FeedMode;
use super::{open_spans, thread_names};
use crate::errors::Error;

/// Whether an event begins or ends a span of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanEffect {
    Begin,
    End,
    None,
}

/// Returns the recorder for an event; `None` if the event is not recorded. Fails if the recording is in the wrong state.
#[inline]
pub(crate) fn admit(feed: &Feed, effect: SpanEffect) -> PyResult<Option<&Recorder>> {
    match feed.recording() {
        Some(recorder) => {
            thread_names::record_once(feed);
            Ok(Some(recorder))
        }
        None => admit_cold(feed, effect),
    }
}

#[cold]
fn admit_cold(feed: &Feed, effect: SpanEffect) -> PyResult<Option<&Recorder>> {
    let mode = feed.mode();
    if let Some(message) = mode.state_error() {
        return Err(Error::state(message).into());
    }
    if mode == FeedMode::Traced && effect == SpanEffect::None {
        // SAFETY: the GIL is held, and the mode shows that a trace is active.
        unsafe { stackweave_trace::write_open() };
        return feed.recorder().map(Some);
    }
    let is_admitted = match (mode, effect) {
        (FeedMode::Resumed | FeedMode::Paused, SpanEffect::Begin) => open_spans::begin(feed),
        (FeedMode::Resumed | FeedMode::Paused, SpanEffect::End) => open_spans::end(feed),
        (mode, _) => mode == FeedMode::Resumed,
    };
    if is_admitted {
        thread_names::record_once(feed);
        return feed.recorder().map(Some);
    }
    Ok(None)
}

/// Returns whether a trace tracks the spans of this recording.
#[inline]
pub(super) fn is_traced(feed: &Feed) -> bool {
    feed.recording().is_none() && feed.is_traced()
}
