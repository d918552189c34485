//! Builds the tree of spans from their starts and ends.
//!
//! Hot file: an event reads two or three nodes, and looks up a map only if the program did not repeat its last steps.
//! Self times are not updated with events: they are total times without those of children.

use std::ops::Range;

use stackweave_recording::events::Event;
use stackweave_recording::read::{Ended, OpenStack};

use crate::word_hash::WordMap;

/// The spans of one or several threads, by path.
#[derive(Debug)]
pub(crate) struct SpanTree {
    /// The first is the root, which has no begin.
    nodes: Vec<SpanNode>,
    by_frame: WordMap<u64, u32>,
    range: Range<u64>,
    pub(crate) counts: SpanCounts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpanNode {
    pub(crate) parent: u32,
    /// The number of its frame in the file.
    pub(crate) frame: u32,
    /// The child that began last; 0 for none.
    last_child: u32,
    /// The sibling that began after it the last time; 0 for none.
    successor: u32,
    /// The number of times that it began or was resumed, without those at which it was only open.
    pub(crate) calls: u64,
    pub(crate) total: u64,
}

/// Unbalanced starts and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpanCounts {
    pub(crate) unfinished: u64,
    pub(crate) unmatched_ends: u64,
}

/// The open spans of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenSpans {
    open: OpenStack<OpenNode>,
    now: u64,
    /// The time of the last event that was not a record of an open span, which is the end of spans that were found to
    /// have ended.
    last_event: u64,
}

#[derive(Clone, Copy, Debug)]
struct OpenNode {
    node: u32,
    began: u64,
    /// 1, or 0 for a span that was open before it was recorded.
    calls: u8,
}

impl OpenSpans {
    /// Returns the node of the innermost span; the root if there is none.
    pub(crate) fn innermost(&self) -> u32 {
        self.open.last().map_or(0, |open| open.node)
    }

    /// Records the time of an event that is not a record of an open span.
    pub(crate) fn record_event(&mut self) {
        self.last_event = self.now;
    }

    /// Prepares for an event at these ticks and this time: ends spans that were not recorded as open, and those open
    /// where events are missing. `losses` are the ticks of missing events, the next one last. Returns the time of the
    /// event.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        tree: &mut SpanTree,
        losses: &mut Vec<u64>,
        (ticks, time): (u64, u64),
        event: &Event<'_>,
    ) -> u64 {
        let is_open = matches!(event, Event::Open(_));
        if !is_open {
            tree.settle(self);
        }
        while losses.last().is_some_and(|lost| ticks > *lost) {
            // Records of open spans list the spans that remain open.
            if !is_open {
                tree.cut(self, None);
            }
            losses.pop();
        }
        let time = self.advance(time);
        if !is_open {
            self.record_event();
        }
        time
    }

    /// Returns the time of an event, but never earlier than that of the event before.
    pub(crate) fn advance(&mut self, time: u64) -> u64 {
        self.now = self.now.max(time);
        self.now
    }
}

impl SpanTree {
    /// Creates a tree. Spans are cut to `range`; one outside of it is not counted.
    pub(crate) fn new(range: Range<u64>) -> Self {
        let nodes = vec![SpanNode::default()];
        Self { nodes, by_frame: WordMap::default(), range, counts: SpanCounts::default() }
    }

    pub(crate) fn nodes(&self) -> &[SpanNode] {
        &self.nodes
    }

    /// Ends the spans that the last records of open spans did not contain.
    #[inline]
    pub(crate) fn settle(&mut self, spans: &mut OpenSpans) {
        if spans.open.was_recorded_open() {
            self.end_beyond(spans);
        }
    }

    #[cold]
    fn end_beyond(&mut self, spans: &mut OpenSpans) {
        while let Some(open) = spans.open.take_beyond() {
            self.close(open, spans.last_event.max(open.began));
            self.counts.unfinished += 1;
        }
    }

    /// Adds an event. Returns whether it begins a span, or records that one is open.
    #[inline]
    pub(crate) fn add(&mut self, spans: &mut OpenSpans, event: &Event<'_>, time: u64) -> bool {
        match event {
            Event::Begin(begin) => self.begin(spans, begin.frame, time),
            Event::Open(open) => self.open(spans, (open.frame, open.depth), time),
            Event::End(_) => {
                self.end(spans, time);
                return false;
            }
            _ => return false,
        }
        true
    }

    pub(crate) fn begin(&mut self, spans: &mut OpenSpans, frame: u32, time: u64) {
        let began = spans.advance(time);
        let node = self.child(spans.innermost(), frame);
        spans.open.begin(OpenNode { node, began, calls: 1 });
    }

    /// Records that `frame` is open at this depth; 0 if no span is open.
    pub(crate) fn open(&mut self, spans: &mut OpenSpans, (frame, depth): (u32, u64), time: u64) {
        if !spans.open.goes_on(depth) {
            self.end_beyond(spans);
        }
        let began = spans.advance(time);
        if frame == 0 {
            spans.open.open_nothing(depth);
            return self.end_beyond(spans);
        }
        let nodes = &self.nodes;
        if spans.open.open(depth, |open| nodes[open.node as usize].frame == frame) {
            self.end_beyond(spans);
            let node = self.child(spans.innermost(), frame);
            spans.open.begin_open(depth, OpenNode { node, began, calls: 0 });
        }
    }

    pub(crate) fn end(&mut self, spans: &mut OpenSpans, time: u64) {
        let ended = spans.advance(time);
        match spans.open.end() {
            Ended::Known(open) => self.close(open, ended),
            Ended::Unknown => {}
            Ended::Nothing => self.counts.unmatched_ends += u64::from(self.range.contains(&ended)),
        }
    }

    /// Ends all open spans, at the time of the thread's last event, or at `until` if that is later.
    pub(crate) fn cut(&mut self, spans: &mut OpenSpans, until: Option<u64>) {
        let ended = until.map_or(spans.now, |until| until.max(spans.now));
        while let Some(open) = spans.open.take_innermost() {
            self.close(open, ended);
            self.counts.unfinished += u64::from(until.is_none());
        }
    }

    fn close(&mut self, open: OpenNode, ended: u64) {
        let Range { start, end } = self.range;
        if open.began < end && (ended > start || open.began >= start) {
            let node = &mut self.nodes[open.node as usize];
            node.calls += u64::from(open.calls);
            node.total = node.total.saturating_add(ended.min(end) - open.began.max(start));
        }
    }

    /// Returns the node of `frame` under `parent`. Programs often repeat the same call, or the sequence of the last
    /// time.
    #[expect(clippy::cast_possible_truncation, reason = "2^32 nodes do not fit into memory")]
    fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let last = self.nodes[parent as usize].last_child;
        if last != 0 {
            let SpanNode { frame: last_frame, successor, .. } = self.nodes[last as usize];
            if last_frame == frame {
                return last;
            }
            if successor != 0 && self.nodes[successor as usize].frame == frame {
                self.nodes[parent as usize].last_child = successor;
                return successor;
            }
        }
        let child = *self.by_frame.entry(u64::from(parent) << 32 | u64::from(frame)).or_insert_with(|| {
            self.nodes.push(SpanNode { parent, frame, ..SpanNode::default() });
            (self.nodes.len() - 1) as u32
        });
        self.nodes[parent as usize].last_child = child;
        self.nodes[last as usize].successor = child;
        child
    }

    /// Returns the tree as if the threads with these spans had ended. No more events can be added to it.
    pub(crate) fn as_cut<'a>(&self, threads: impl Iterator<Item = &'a OpenSpans>) -> Self {
        let mut tree = Self {
            nodes: self.nodes.clone(),
            by_frame: WordMap::default(),
            range: self.range.clone(),
            counts: self.counts,
        };
        for spans in threads {
            tree.cut(&mut spans.clone(), None);
        }
        tree
    }

    /// Frees the memory that only further events would need.
    pub(crate) fn seal(&mut self) {
        self.by_frame = WordMap::default();
        self.nodes.shrink_to_fit();
    }

    /// Returns the self time of each node.
    pub(crate) fn self_times(&self) -> Vec<i64> {
        let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        let mut own: Vec<i64> = self.nodes.iter().map(|node| signed(node.total)).collect();
        for node in &self.nodes[1..] {
            let above = &mut own[node.parent as usize];
            *above = above.saturating_sub(signed(node.total));
        }
        own[0] = 0;
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns frame, calls, total and self time of each node.
    fn nodes(tree: &SpanTree) -> Vec<(u32, u64, u64, i64)> {
        let own = tree.self_times();
        tree.nodes.iter().zip(own).skip(1).map(|(node, own)| (node.frame, node.calls, node.total, own)).collect()
    }

    #[test]
    fn own_time_is_what_children_did_not_take() {
        let (mut tree, mut spans) = (SpanTree::new(0..u64::MAX), OpenSpans::default());
        tree.begin(&mut spans, 7, 10);
        for start in [20, 40] {
            tree.begin(&mut spans, 8, start);
            tree.begin(&mut spans, 7, start + 1);
            tree.end(&mut spans, start + 4);
            tree.end(&mut spans, start + 10);
        }
        tree.end(&mut spans, 100);
        assert_eq!(nodes(&tree), [(7, 1, 90, 70), (8, 2, 20, 14), (7, 2, 6, 6)]);
        assert_eq!(tree.counts, SpanCounts::default());
    }

    #[test]
    fn what_is_odd_is_counted() {
        let (mut tree, mut spans) = (SpanTree::new(0..u64::MAX), OpenSpans::default());
        tree.end(&mut spans, 5);
        tree.begin(&mut spans, 1, 10);
        tree.begin(&mut spans, 2, 8);
        tree.end(&mut spans, 14);
        tree.cut(&mut spans, None);
        tree.begin(&mut spans, 3, 20);
        tree.cut(&mut spans, Some(25));
        assert_eq!(nodes(&tree), [(1, 1, 4, 0), (2, 1, 4, 4), (3, 1, 5, 5)]);
        assert_eq!(tree.counts, SpanCounts { unfinished: 1, unmatched_ends: 1 });
    }

    #[test]
    fn spans_are_cut_to_the_range() {
        let (mut tree, mut spans) = (SpanTree::new(10..20), OpenSpans::default());
        for (frame, began, ended) in [(1, 0, 9), (2, 0, 10), (3, 0, 11), (4, 10, 10), (5, 19, 30), (6, 20, 30)] {
            let mut spans = OpenSpans::default();
            tree.begin(&mut spans, frame, began);
            tree.end(&mut spans, ended);
        }
        tree.begin(&mut spans, 7, 0);
        tree.end(&mut spans, 100);
        let seen: Vec<_> = nodes(&tree).into_iter().filter(|node| node.1 > 0).collect();
        assert_eq!(seen, [(3, 1, 1, 1), (4, 1, 0, 0), (5, 1, 1, 1), (7, 1, 10, 10)]);
    }
}
