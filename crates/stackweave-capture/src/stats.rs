//! Statistics of captures.

use core::sync::atomic::Ordering;

use stackweave_core::SourceStop;
use stackweave_store::StackTableStats;

use crate::buffers;
use crate::capture::stacks;

/// Totals of all threads since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureStats {
    /// Number of captured stacks.
    pub captures: u64,
    /// Number of captures by why the walk of interpreters' frames ended, indexed by `SourceStop as usize`.
    pub source_stops: [u64; SourceStop::ALL.len()],
    /// The table of stacks.
    pub stacks: StackTableStats,
}

impl CaptureStats {
    /// Returns the number of captures whose walk of interpreters' frames ended for `reason`.
    pub fn stopped_by(&self, reason: SourceStop) -> u64 {
        self.source_stops[reason as usize]
    }
}

/// Returns the totals of all threads since the process began.
pub fn stats() -> CaptureStats {
    let mut total = CaptureStats { stacks: stacks().stats(), ..CaptureStats::default() };
    for counters in buffers::all() {
        total.captures += counters.captures.load(Ordering::Relaxed);
        for (sum, counter) in total.source_stops.iter_mut().zip(&counters.source_stops) {
            *sum += counter.load(Ordering::Relaxed);
        }
    }
    total
}
