//! Whether an event goes into the recording now.
//!
//! Hot file: no allocation and no lock while the recording was never paused. The GIL is held.

use pyo3::prelude::*;
use stackweave_recording::Recorder;

use super::feed::{Feed, Mode};
use super::{open_spans, thread_names};
use crate::errors::Error;

/// What an event does to the spans of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Begins,
    Ends,
    Happens,
}

/// Who records it; `None` if nobody does, and an error if the program should have known.
#[inline]
pub(crate) fn admit(feed: &Feed, what: What) -> PyResult<Option<&Recorder>> {
    match feed.recording() {
        Some(recorder) => {
            thread_names::tell(feed);
            Ok(Some(recorder))
        }
        None => admit_otherwise(feed, what),
    }
}

#[cold]
fn admit_otherwise(feed: &Feed, what: What) -> PyResult<Option<&Recorder>> {
    let mode = feed.mode();
    if let Some(complaint) = mode.complaint() {
        return Err(Error::state(complaint).into());
    }
    if mode == Mode::Traced && what == What::Happens {
        // SAFETY: the GIL is held, and what is traced has a trace.
        unsafe { stackweave_trace::write_open() };
        return feed.recorder().map(Some);
    }
    let is_admitted = match (mode, what) {
        (Mode::Resumed | Mode::Paused, What::Begins) => open_spans::begins(feed),
        (Mode::Resumed | Mode::Paused, What::Ends) => open_spans::ends(feed),
        (mode, _) => mode == Mode::Resumed,
    };
    if is_admitted {
        thread_names::tell(feed);
        return feed.recorder().map(Some);
    }
    Ok(None)
}

/// Whether a trace looks after the spans of this recording.
#[inline]
pub(super) fn is_traced(feed: &Feed) -> bool {
    feed.recording().is_none() && feed.is_traced()
}
