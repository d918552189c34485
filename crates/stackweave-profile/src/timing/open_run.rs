//! The figures of a run while it is open.
//!
//! Only the innermost open run of a thread counts events. When it ends, its sums are added to the run around it: so the
//! cost of an event does not depend on the number of open runs.

use crate::word_hash::WordMap;

/// A run that has begun, with its figures.
#[derive(Debug, Default)]
pub(super) struct OpenRun {
    /// Its index in the rows.
    pub(super) row: usize,
    /// The number of phases that are open around its phases.
    pub(super) depth: usize,
    pub(super) sums: RunSums,
    /// The number of phases of each frame that are open in it.
    open: WordMap<u32, u32>,
}

/// The figures of a run.
#[derive(Debug, Default)]
pub(super) struct RunSums {
    /// By frame, for listed phases: time inside an open phase of the same frame counts once.
    pub(super) phases: WordMap<u32, PhaseTime>,
    /// The number of phases that began in it.
    pub(super) begun: u64,
    /// The maximum number of open phases in it.
    pub(super) deepest: usize,
}

/// The time of phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PhaseTime {
    /// 0 for a phase that was open before it was recorded.
    pub(super) calls: u64,
    pub(super) ns: u64,
    /// Without listed phases inside.
    pub(super) self_ns: u64,
}

impl OpenRun {
    pub(super) fn new(row: usize, depth: usize) -> Self {
        Self { row, depth, ..Self::default() }
    }

    /// Begins a listed phase.
    pub(super) fn begin(&mut self, frame: u32) {
        *self.open.entry(frame).or_default() += 1;
    }

    /// Ends a listed phase; `time` is `None` if all of it is outside of the selected time.
    pub(super) fn end(&mut self, frame: u32, time: Option<PhaseTime>) {
        let Some(open) = self.open.get_mut(&frame) else { return };
        *open = open.saturating_sub(1);
        let is_outermost = *open == 0;
        if let Some(PhaseTime { calls, ns, self_ns }) = time {
            let sums = self.sums.phases.entry(frame).or_default();
            sums.calls = sums.calls.saturating_add(calls);
            sums.self_ns = sums.self_ns.saturating_add(self_ns);
            sums.ns = sums.ns.saturating_add(if is_outermost { ns } else { 0 });
        }
    }

    /// Counts a phase in the selected time, with `depth` phases open around it.
    pub(super) fn count(&mut self, depth: usize, calls: u64) {
        self.sums.begun = self.sums.begun.saturating_add(calls);
        self.sums.deepest = self.sums.deepest.max((depth + 1).saturating_sub(self.depth));
    }

    /// Adds a run inside this one that has ended, with `depth` phases open around it; it is still open here as a phase.
    pub(super) fn add_inner(&mut self, depth: usize, inner: &RunSums) {
        self.sums.begun = self.sums.begun.saturating_add(inner.begun);
        if inner.deepest > 0 {
            self.sums.deepest = self.sums.deepest.max((depth + 1).saturating_sub(self.depth) + inner.deepest);
        }
        for (frame, spent) in &inner.phases {
            let is_open = self.open.get(frame).is_some_and(|open| *open > 0);
            let sums = self.sums.phases.entry(*frame).or_default();
            sums.calls = sums.calls.saturating_add(spent.calls);
            sums.self_ns = sums.self_ns.saturating_add(spent.self_ns);
            sums.ns = sums.ns.saturating_add(if is_open { 0 } else { spent.ns });
        }
    }
}
