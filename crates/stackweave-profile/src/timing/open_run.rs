//! What goes on in a run while it is open.
//!
//! Only the innermost open run of a thread counts. When it ends, what it has counted is added to the run around it: so an
//! event costs the same however many runs are open.

use crate::word_hash::WordMap;

/// A run that has begun, with what has happened in it.
#[derive(Debug, Default)]
pub(super) struct OpenRun {
    /// Its place among the rows.
    pub(super) row: usize,
    /// How many phases are open around what it begins.
    pub(super) depth: usize,
    pub(super) sums: RunSums,
    /// How many phases of each frame are open in it.
    open: WordMap<u32, u32>,
}

/// What has happened in a run.
#[derive(Debug, Default)]
pub(super) struct RunSums {
    /// By frame, of those that are told apart: time inside of an open phase of the same frame counts once.
    pub(super) phases: WordMap<u32, Spent>,
    /// How many phases have begun in it.
    pub(super) begun: u64,
    /// How many were open in it at most.
    pub(super) deepest: usize,
}

/// What phases took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// 0 for one that was open when it was first heard of.
    pub(super) calls: u64,
    pub(super) ns: u64,
    /// Without phases inside that are told apart, too.
    pub(super) own_ns: u64,
}

impl OpenRun {
    pub(super) fn new(row: usize, depth: usize) -> Self {
        Self { row, depth, ..Self::default() }
    }

    /// A phase begins of a frame that is told apart.
    pub(super) fn begin(&mut self, frame: u32) {
        *self.open.entry(frame).or_default() += 1;
    }

    /// A phase of a frame that is told apart ends; `time` is `None` if all of it lies outside of the time asked for.
    pub(super) fn end(&mut self, frame: u32, time: Option<Spent>) {
        let Some(open) = self.open.get_mut(&frame) else { return };
        *open = open.saturating_sub(1);
        let is_outermost = *open == 0;
        if let Some(Spent { calls, ns, own_ns }) = time {
            let sums = self.sums.phases.entry(frame).or_default();
            sums.calls = sums.calls.saturating_add(calls);
            sums.own_ns = sums.own_ns.saturating_add(own_ns);
            sums.ns = sums.ns.saturating_add(if is_outermost { ns } else { 0 });
        }
    }

    /// A phase was in the time asked for, with `depth` open around it.
    pub(super) fn had(&mut self, depth: usize, calls: u64) {
        self.sums.begun = self.sums.begun.saturating_add(calls);
        self.sums.deepest = self.sums.deepest.max((depth + 1).saturating_sub(self.depth));
    }

    /// A run inside this one has ended, with `depth` open around it, and is still open here as a phase.
    pub(super) fn take_in(&mut self, depth: usize, inner: &RunSums) {
        self.sums.begun = self.sums.begun.saturating_add(inner.begun);
        if inner.deepest > 0 {
            self.sums.deepest = self.sums.deepest.max((depth + 1).saturating_sub(self.depth) + inner.deepest);
        }
        for (frame, spent) in &inner.phases {
            let is_open = self.open.get(frame).is_some_and(|open| *open > 0);
            let sums = self.sums.phases.entry(*frame).or_default();
            sums.calls = sums.calls.saturating_add(spent.calls);
            sums.own_ns = sums.own_ns.saturating_add(spent.own_ns);
            sums.ns = sums.ns.saturating_add(if is_open { 0 } else { spent.ns });
        }
    }
}
