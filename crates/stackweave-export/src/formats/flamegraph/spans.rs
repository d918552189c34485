//! The spans of threads as boxes, in the order of time.
//!
//! A picture has a limited number of pixels, however many spans there are. Boxes that are too narrow to be visible are
//! merged with their neighbours, or else dropped. The total width is known only at the end, so the boxes are reduced
//! again whenever there are too many.

use super::{MAX_DEPTH, MIN_WIDTH};

/// A call, or several with no visible gap between them. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanBox {
    pub(super) began: u64,
    pub(super) ended: u64,
    /// The time of its calls, without gaps.
    pub(super) busy: u64,
    pub(super) calls: u64,
    /// The number of calls that failed, and the index of the first reason that was recorded.
    pub(super) failed: u64,
    pub(super) reason: Option<u32>,
    pub(super) item: u32,
    pub(super) depth: u32,
    /// The id of the box, and that of its parent.
    id: u64,
    parent: u64,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadBoxes {
    pub(super) boxes: Vec<SpanBox>,
    /// The newest box of each depth.
    newest: Vec<Option<SpanBox>>,
    /// The last start of each open box, and the number of boxes of each open span.
    open: Vec<u64>,
    spans: Vec<usize>,
    next_id: u64,
    pub(super) narrow: u64,
    /// The number of boxes at which they are reduced.
    limit: usize,
    first: Option<u64>,
    last: u64,
}

/// The item of a box for short calls of several functions.
pub(super) const SEVERAL_FUNCTIONS: u32 = u32::MAX;

/// Up to this many boxes are kept without reducing them.
const REDUCE_AT: usize = 100_000;

impl ThreadBoxes {
    /// Begins a span with these items, outermost first.
    pub(super) fn begin(&mut self, items: &[u32], time: u64) {
        let time = self.advance(time);
        self.spans.push(items.len());
        for item in items {
            let depth = self.open.len();
            let parent = depth.checked_sub(1).and_then(|above| self.newest[above]).map_or(0, |above| above.id);
            if self.newest.len() == depth {
                self.newest.push(None);
            }
            let narrow = self.narrowest();
            match &mut self.newest[depth] {
                Some(last) if last.continues(*item, parent, time, narrow) => last.calls += 1,
                _ => self.start(depth, *item, parent, time),
            }
            self.open.push(time);
        }
    }

    /// Ends the innermost span.
    pub(super) fn end(&mut self, time: u64) {
        self.end_as(time, |_| {});
    }

    /// Ends the innermost span as failed, with the index of the reason if it is known.
    pub(super) fn fail(&mut self, time: u64, reason: Option<u32>) {
        self.end_as(time, |of| {
            of.failed += 1;
            of.reason = of.reason.or(reason);
        });
    }

    fn end_as(&mut self, time: u64, update: impl Fn(&mut SpanBox)) {
        let time = self.advance(time);
        for _ in 0..self.spans.pop().unwrap_or(0) {
            let Some(began) = self.open.pop() else { return };
            if let Some(of) = &mut self.newest[self.open.len()] {
                of.ended = time;
                of.busy = of.busy.saturating_add(time.saturating_sub(began));
                update(of);
            }
        }
    }

    /// Returns the time from the first to the last event.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.first.unwrap_or(0), self.last)
    }

    /// Finishes the boxes, and drops those with a smaller share of `whole` than is visible. Callers come first.
    pub(super) fn finish(&mut self, whole: u64) {
        while !self.spans.is_empty() {
            self.end(self.last);
        }
        self.boxes.extend(self.newest.drain(..).flatten());
        self.reduce(least(whole));
        self.boxes.sort_unstable_by_key(|of| (of.began, of.depth, of.id));
    }

    fn advance(&mut self, time: u64) -> u64 {
        self.first.get_or_insert(time);
        self.last = self.last.max(time);
        self.last
    }

    /// Returns the least time that may be visible, as far as is known now.
    fn narrowest(&self) -> u64 {
        least(self.last - self.first.unwrap_or(self.last))
    }

    fn start(&mut self, depth: usize, item: u32, parent: u64, time: u64) {
        self.next_id += 1;
        let depth_number = u32::try_from(depth).unwrap_or(u32::MAX);
        let (id, calls) = (self.next_id, 1);
        let (failed, reason) = (0, None);
        let new =
            SpanBox { began: time, ended: time, busy: 0, calls, failed, reason, item, depth: depth_number, id, parent };
        self.boxes.extend(self.newest[depth].replace(new));
        if self.boxes.len() > self.limit.max(REDUCE_AT) {
            self.reduce(self.narrowest());
            self.limit = self.boxes.len() * 2;
        }
    }

    /// Merges narrow neighbours, and drops boxes that are still narrow.
    fn reduce(&mut self, least: u64) {
        self.boxes.sort_unstable_by_key(|of| (of.depth, of.began, of.id));
        let mut kept: Vec<SpanBox> = Vec::with_capacity(self.boxes.len());
        for of in core::mem::take(&mut self.boxes) {
            match kept.last_mut() {
                Some(before) if before.absorbs(&of, least) => before.add(&of),
                _ => {
                    self.narrow += kept.pop_if(|before| before.is_narrow(least)).map_or(0, |before| before.calls);
                    kept.push(of);
                }
            }
        }
        self.narrow += kept.pop_if(|before| before.is_narrow(least)).map_or(0, |before| before.calls);
        self.boxes = kept;
    }
}

impl SpanBox {
    /// Returns whether a call belongs to this box: the same function and caller, without a visible gap.
    fn continues(&self, item: u32, parent: u64, time: u64, narrow: u64) -> bool {
        let is_same = self.item == item && self.parent == parent;
        is_same && time - self.ended < narrow && self.ended - self.began < narrow.saturating_mul(10)
    }

    fn is_narrow(&self, least: u64) -> bool {
        self.ended - self.began < least.max(1) || self.depth >= MAX_DEPTH
    }

    /// Returns whether the next box of its depth becomes a part of this one: neither is visible, nor the gap between
    /// them.
    fn absorbs(&self, next: &Self, least: u64) -> bool {
        let is_short = |of: &Self| of.item == SEVERAL_FUNCTIONS || of.is_narrow(least);
        let is_beside = self.depth == next.depth && self.parent == next.parent;
        is_beside && is_short(self) && is_short(next) && next.began.saturating_sub(self.ended) < least
    }

    fn add(&mut self, next: &Self) {
        if self.item != next.item {
            self.item = SEVERAL_FUNCTIONS;
        }
        self.ended = self.ended.max(next.ended);
        self.busy = self.busy.saturating_add(next.busy);
        self.calls += next.calls;
        self.failed += next.failed;
        self.reason = self.reason.or(next.reason);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a pixel")]
fn least(whole: u64) -> u64 {
    (whole as f64 * MIN_WIDTH) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(thread: &ThreadBoxes) -> Vec<(u32, u32, u64, u64, u64)> {
        thread.boxes.iter().map(|of| (of.item, of.depth, of.began, of.ended, of.calls)).collect()
    }

    #[test]
    fn spans_become_boxes_in_order() {
        let mut thread = ThreadBoxes::default();
        thread.begin(&[1], 0);
        thread.begin(&[2, 3], 10);
        thread.end(20);
        thread.begin(&[2], 20);
        thread.end(30);
        thread.begin(&[], 30);
        thread.begin(&[4], 30);
        thread.end(40);
        thread.end(50);
        thread.begin(&[5], 60);
        thread.finish(70);
        let expected = [(1, 0, 0, 60, 1), (2, 1, 10, 20, 1), (3, 2, 10, 20, 1), (2, 1, 20, 30, 1), (4, 1, 30, 40, 1)];
        assert_eq!(boxes(&thread), expected);
        assert_eq!(thread.narrow, 1, "a span without duration");
    }

    #[test]
    fn short_calls_of_several_functions_leave_no_gap() {
        let mut thread = ThreadBoxes::default();
        for call in 0..300_000_u64 {
            thread.begin(&[u32::try_from(call % 7).unwrap()], call * 10);
            thread.end(call * 10 + 9);
        }
        thread.finish(3_000_000);
        let covered: u64 = thread.boxes.iter().map(|of| of.ended - of.began).sum();
        let calls: u64 = thread.boxes.iter().map(|of| of.calls).sum();
        assert!(thread.boxes.iter().all(|of| of.item == SEVERAL_FUNCTIONS));
        assert_eq!((calls + thread.narrow, thread.boxes.len()), (300_000, 1));
        assert!(covered > 2_990_000, "{covered}");
    }

    #[test]
    fn a_million_short_calls_are_few_boxes() {
        let mut thread = ThreadBoxes::default();
        thread.begin(&[1], 0);
        for call in 0..1_000_000_u64 {
            thread.begin(&[2], call * 10);
            thread.begin(&[3], call * 10 + 2);
            thread.end(call * 10 + 8);
            thread.end(call * 10 + 9);
        }
        thread.end(10_000_000);
        assert!(thread.boxes.len() <= REDUCE_AT * 2 + 2);
        thread.finish(10_000_000);
        assert!(thread.boxes.len() < 40_000, "{}", thread.boxes.len());
        let calls: u64 = thread.boxes.iter().filter(|of| of.item == 2).map(|of| of.calls).sum();
        assert!(calls > 900_000, "{calls}");
        let end = |boxes: &[SpanBox]| boxes.iter().map(|of| of.ended).max();
        assert_eq!(end(&thread.boxes), Some(10_000_000));
    }
}
