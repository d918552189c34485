//! Which open spans of a thread have a beginning in the recording, once it was paused.
//!
//! A span that began during a pause must not end in the file: what ends there is what began there last. One that began
//! before must, pause or not.

use std::cell::RefCell;

use super::feed::{Feed, Mode};

thread_local! {
    /// For each recording that was ever paused: the spans that began here since, outermost first.
    static OPEN: RefCell<Vec<(u32, Vec<bool>)>> = const { RefCell::new(Vec::new()) };
}

/// Something begins; whether it is to be recorded.
pub(super) fn begins(feed: &Feed) -> bool {
    let is_recorded = feed.mode() == Mode::Resumed;
    with_spans(feed, |spans| spans.push(is_recorded));
    is_recorded
}

/// Something ends; whether that is to be recorded. What nobody saw begin did so before the first pause.
pub(super) fn ends(feed: &Feed) -> bool {
    with_spans(feed, Vec::pop).flatten().unwrap_or(true)
}

/// How many have begun here since the first pause and not ended.
pub(crate) fn count(feed: &Feed) -> usize {
    if feed.recording().is_some() { 0 } else { with_spans(feed, |spans| spans.len()).unwrap_or(0) }
}

/// All but the first so many have ended, as nobody says of them any more.
pub(crate) fn cut(feed: &Feed, count: usize) {
    if feed.recording().is_none() {
        with_spans(feed, |spans| spans.truncate(count));
    }
}

/// `None` at the end of the thread, or if a signal handler came in between.
fn with_spans<R>(feed: &Feed, work: impl FnOnce(&mut Vec<bool>) -> R) -> Option<R> {
    let serial = feed.serial();
    OPEN.try_with(|open| {
        let mut open = open.try_borrow_mut().ok()?;
        let place = open.iter().position(|(known, _)| *known == serial).unwrap_or_else(|| {
            open.push((serial, Vec::new()));
            open.len() - 1
        });
        Some(work(&mut open[place].1))
    })
    .ok()
    .flatten()
}
