//! The counters of each thread.

use core::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::StopReason;

use crate::stats::UnwindStats;

/// The counters of one thread. Only that thread writes them, so adding is a load and a store.
#[derive(Debug)]
pub(crate) struct UnwindCounters {
    pub(crate) frames: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) unsupported: AtomicU64,
    pub(crate) resets: AtomicU64,
    pub(crate) stops: [AtomicU64; StopReason::ALL.len()],
}

/// Adds to a counter that only this thread writes.
#[inline(always)]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

impl UnwindCounters {
    /// Adds this thread's counters to `total`.
    pub(crate) fn add_to(&self, total: &mut UnwindStats) {
        let misses = self.misses.load(Ordering::Relaxed);
        total.hits += self.frames.load(Ordering::Relaxed).saturating_sub(misses);
        total.misses += misses;
        total.unsupported += self.unsupported.load(Ordering::Relaxed);
        total.resets += self.resets.load(Ordering::Relaxed);
        for (total, count) in total.stops.iter_mut().zip(&self.stops) {
            *total += count.load(Ordering::Relaxed);
        }
    }
}
