//! How captures went.

use core::sync::atomic::Ordering;

use stackweave_core::SourceStop;
use stackweave_store::StackTableStats;

use crate::buffers;
use crate::capture::stacks;

/// Totals over all threads since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Captured stacks.
    pub captures: u64,
    /// Captures by why the walk of interpreters' frames ended, indexed by `SourceStop as usize`.
    pub source_stops: [u64; SourceStop::ALL.len()],
    /// The table of stacks.
    pub stacks: StackTableStats,
}

impl Stats {
    /// For how many captures the walk of interpreters' frames ended for `reason`.
    pub fn stopped_by(&self, reason: SourceStop) -> u64 {
        self.source_stops[reason as usize]
    }
}

/// Totals over all threads since the process began.
pub fn stats() -> Stats {
    let mut total = Stats { stacks: stacks().stats(), ..Stats::default() };
    for counters in buffers::all() {
        total.captures += counters.captures.load(Ordering::Relaxed);
        for (sum, counter) in total.source_stops.iter_mut().zip(&counters.source_stops) {
            *sum += counter.load(Ordering::Relaxed);
        }
    }
    total
}
