//! Tracks which open spans of a thread have a begin event in a recording that was paused.
//!
//! An end event ends the last span that began in the file. So the end of a span that began during a pause must not be recorded,
//! and the end of a span that began before the pause must be recorded.

use std::cell::RefCell;

use super::feed::Feed;
use super::feed_mode::FeedMode;

thread_local! {
    /// For each recording that was paused: whether each open span that began since then is recorded, outermost first.
    static OPEN_SPANS: RefCell<Vec<(u32, Vec<bool>)>> = const { RefCell::new(Vec::new()) };
}

/// Begins a span. Returns whether its begin event must be recorded.
pub(super) fn begin(feed: &Feed) -> bool {
    let is_recorded = feed.mode() == FeedMode::Resumed;
    with_spans(feed, |spans| spans.push(is_recorded));
    is_recorded
}

/// Ends a span. Returns whether its end event must be recorded. A span without an entry began before the first pause.
pub(super) fn end(feed: &Feed) -> bool {
    with_spans(feed, Vec::pop).flatten().unwrap_or(true)
}

/// Returns the number of open spans of this thread that began after the first pause.
pub(crate) fn count(feed: &Feed) -> usize {
    if feed.recording().is_some() { 0 } else { with_spans(feed, |spans| spans.len()).unwrap_or(0) }
}

/// Ends all spans except the first `count`, without events.
pub(crate) fn truncate(feed: &Feed, count: usize) {
    if feed.recording().is_none() {
        with_spans(feed, |spans| spans.truncate(count));
    }
}

/// Calls `work` with the spans of this thread. Returns `None` at the end of the thread, or in a signal handler that has
/// interrupted this function.
fn with_spans<R>(feed: &Feed, work: impl FnOnce(&mut Vec<bool>) -> R) -> Option<R> {
    let serial = feed.serial();
    OPEN_SPANS
        .try_with(|open| {
            let mut open = open.try_borrow_mut().ok()?;
            let index = open.iter().position(|(known, _)| *known == serial).unwrap_or_else(|| {
                open.push((serial, Vec::new()));
                open.len() - 1
            });
            Some(work(&mut open[index].1))
        })
        .ok()
        .flatten()
}
