//! What threads did, in its order, as boxes.
//!
//! However many spans there are, a picture has but so many pixels. Boxes that are too narrow to be seen become one with
//! those beside them, and are dropped where that does not help. How wide the whole is shows only in the end, so what is
//! kept is looked through whenever it becomes much.

use super::{DEEPEST, NARROWEST};

/// One call, or several without anything to see between them. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanBox {
    pub(super) began: u64,
    pub(super) ended: u64,
    /// The time of its calls, without what lies between them.
    pub(super) busy: u64,
    pub(super) calls: u64,
    /// How many of them failed, and the number of the first reason that was told.
    pub(super) failed: u64,
    pub(super) reason: Option<u32>,
    pub(super) item: u32,
    pub(super) depth: u32,
    /// A number of its own, and that of the box around it.
    id: u64,
    parent: u64,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub(super) boxes: Vec<SpanBox>,
    /// The newest box of each depth.
    newest: Vec<Option<SpanBox>>,
    /// When each box that is open began last, and of how many boxes each open span is.
    open: Vec<u64>,
    spans: Vec<usize>,
    next_id: u64,
    pub(super) narrow: u64,
    /// Boxes are looked through when there are as many.
    limit: usize,
    first: Option<u64>,
    last: u64,
}

/// The item of a box for short calls of several functions.
pub(super) const SEVERAL: u32 = u32::MAX;

/// So many boxes are kept without a look at which of them are too narrow.
const MANY: usize = 100_000;

impl Lane {
    /// A span of these items, outermost first, begins.
    pub(super) fn begin(&mut self, items: &[u32], time: u64) {
        let time = self.at(time);
        self.spans.push(items.len());
        for item in items {
            let depth = self.open.len();
            let parent = depth.checked_sub(1).and_then(|above| self.newest[above]).map_or(0, |above| above.id);
            if self.newest.len() == depth {
                self.newest.push(None);
            }
            let narrow = self.narrowest();
            match &mut self.newest[depth] {
                Some(last) if last.goes_on(*item, parent, time, narrow) => last.calls += 1,
                _ => self.start(depth, *item, parent, time),
            }
            self.open.push(time);
        }
    }

    /// The innermost span ends.
    pub(super) fn end(&mut self, time: u64) {
        self.end_as(time, |_| {});
    }

    /// The innermost span has failed, for the reason of this number if that is known.
    pub(super) fn fail(&mut self, time: u64, reason: Option<u32>) {
        self.end_as(time, |of| {
            of.failed += 1;
            of.reason = of.reason.or(reason);
        });
    }

    fn end_as(&mut self, time: u64, tell: impl Fn(&mut SpanBox)) {
        let time = self.at(time);
        for _ in 0..self.spans.pop().unwrap_or(0) {
            let Some(began) = self.open.pop() else { return };
            if let Some(of) = &mut self.newest[self.open.len()] {
                of.ended = time;
                of.busy = of.busy.saturating_add(time.saturating_sub(began));
                tell(of);
            }
        }
    }

    /// From when to when something happened.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.first.unwrap_or(0), self.last)
    }

    /// Takes what is left, and drops what is narrower than a share of `whole`. Callers come first.
    pub(super) fn finish(&mut self, whole: u64) {
        while !self.spans.is_empty() {
            self.end(self.last);
        }
        self.boxes.extend(self.newest.drain(..).flatten());
        self.thin(least(whole));
        self.boxes.sort_unstable_by_key(|of| (of.began, of.depth, of.id));
    }

    fn at(&mut self, time: u64) -> u64 {
        self.first.get_or_insert(time);
        self.last = self.last.max(time);
        self.last
    }

    /// The least time that may be seen, as far as it is known now.
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
        if self.boxes.len() > self.limit.max(MANY) {
            self.thin(self.narrowest());
            self.limit = self.boxes.len() * 2;
        }
    }

    /// Makes one box of narrow ones that stand side by side, and drops what is narrow still.
    fn thin(&mut self, least: u64) {
        self.boxes.sort_unstable_by_key(|of| (of.depth, of.began, of.id));
        let mut kept: Vec<SpanBox> = Vec::with_capacity(self.boxes.len());
        for of in core::mem::take(&mut self.boxes) {
            match kept.last_mut() {
                Some(before) if before.takes(&of, least) => before.add(&of),
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
    /// Whether a call is one with what is here: the same function, called by the same, with nothing to see between.
    fn goes_on(&self, item: u32, parent: u64, time: u64, narrow: u64) -> bool {
        let is_same = self.item == item && self.parent == parent;
        is_same && time - self.ended < narrow && self.ended - self.began < narrow.saturating_mul(10)
    }

    fn is_narrow(&self, least: u64) -> bool {
        self.ended - self.began < least.max(1) || self.depth >= DEEPEST
    }

    /// Whether the next box of its depth becomes a part of it: neither can be seen by itself, nor what is between them.
    fn takes(&self, next: &Self, least: u64) -> bool {
        let is_short = |of: &Self| of.item == SEVERAL || of.is_narrow(least);
        let is_beside = self.depth == next.depth && self.parent == next.parent;
        is_beside && is_short(self) && is_short(next) && next.began.saturating_sub(self.ended) < least
    }

    fn add(&mut self, next: &Self) {
        if self.item != next.item {
            self.item = SEVERAL;
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
    (whole as f64 * NARROWEST) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lane: &Lane) -> Vec<(u32, u32, u64, u64, u64)> {
        lane.boxes.iter().map(|of| (of.item, of.depth, of.began, of.ended, of.calls)).collect()
    }

    #[test]
    fn spans_become_boxes_in_their_order() {
        let mut lane = Lane::default();
        lane.begin(&[1], 0);
        lane.begin(&[2, 3], 10);
        lane.end(20);
        lane.begin(&[2], 20);
        lane.end(30);
        lane.begin(&[], 30);
        lane.begin(&[4], 30);
        lane.end(40);
        lane.end(50);
        lane.begin(&[5], 60);
        lane.finish(70);
        let expected = [(1, 0, 0, 60, 1), (2, 1, 10, 20, 1), (3, 2, 10, 20, 1), (2, 1, 20, 30, 1), (4, 1, 30, 40, 1)];
        assert_eq!(seen(&lane), expected);
        assert_eq!(lane.narrow, 1, "what took no time");
    }

    #[test]
    fn short_calls_of_several_functions_leave_no_hole() {
        let mut lane = Lane::default();
        for call in 0..300_000_u64 {
            lane.begin(&[u32::try_from(call % 7).unwrap()], call * 10);
            lane.end(call * 10 + 9);
        }
        lane.finish(3_000_000);
        let covered: u64 = lane.boxes.iter().map(|of| of.ended - of.began).sum();
        let calls: u64 = lane.boxes.iter().map(|of| of.calls).sum();
        assert!(lane.boxes.iter().all(|of| of.item == SEVERAL));
        assert_eq!((calls + lane.narrow, lane.boxes.len()), (300_000, 1));
        assert!(covered > 2_990_000, "{covered}");
    }

    #[test]
    fn a_million_short_calls_are_few_boxes() {
        let mut lane = Lane::default();
        lane.begin(&[1], 0);
        for call in 0..1_000_000_u64 {
            lane.begin(&[2], call * 10);
            lane.begin(&[3], call * 10 + 2);
            lane.end(call * 10 + 8);
            lane.end(call * 10 + 9);
        }
        lane.end(10_000_000);
        assert!(lane.boxes.len() <= MANY * 2 + 2);
        lane.finish(10_000_000);
        assert!(lane.boxes.len() < 40_000, "{}", lane.boxes.len());
        let calls: u64 = lane.boxes.iter().filter(|of| of.item == 2).map(|of| of.calls).sum();
        assert!(calls > 900_000, "{calls}");
        let end = |boxes: &[SpanBox]| boxes.iter().map(|of| of.ended).max();
        assert_eq!(end(&lane.boxes), Some(10_000_000));
    }
}
