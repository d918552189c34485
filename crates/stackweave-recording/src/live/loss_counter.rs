//! Counters of lost events.
//!
//! Hot file: no lock, no allocation; async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter with the times of the first and last event. A thread adds, the writer takes.
#[derive(Debug)]
pub(super) struct LossCounter {
    count: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
}

/// A number of events, and the times of the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountedEvents {
    pub(super) count: u64,
    pub(super) first_ticks: u64,
    pub(super) last_ticks: u64,
}

impl LossCounter {
    pub(super) const fn new() -> Self {
        Self { count: AtomicU64::new(0), first: AtomicU64::new(u64::MAX), last: AtomicU64::new(0) }
    }

    /// Counts an event at this time.
    #[cold]
    pub(super) fn add(&self, ticks: u64) {
        self.first.fetch_min(ticks, Ordering::Relaxed);
        self.last.fetch_max(ticks, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Returns the counted events, and resets the counter. An event that is added meanwhile may get the times of the next call.
    pub(super) fn take(&self) -> Option<CountedEvents> {
        let count = self.count.swap(0, Ordering::Acquire);
        if count == 0 {
            return None;
        }
        let (first, last) = (self.first.swap(u64::MAX, Ordering::Relaxed), self.last.swap(0, Ordering::Relaxed));
        Some(CountedEvents { count, first_ticks: first.min(last), last_ticks: last })
    }
}

impl CountedEvents {
    /// Returns the sum of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            first_ticks: self.first_ticks.min(other.first_ticks),
            last_ticks: self.last_ticks.max(other.last_ticks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_with_times_and_is_reset() {
        let tally = LossCounter::new();
        assert_eq!(tally.take(), None);
        for ticks in [7, 5, 9] {
            tally.add(ticks);
        }
        assert_eq!(tally.take(), Some(CountedEvents { count: 3, first_ticks: 5, last_ticks: 9 }));
        tally.add(20);
        let again = tally.take().unwrap();
        assert_eq!(again, CountedEvents { count: 1, first_ticks: 20, last_ticks: 20 });
        let both = again.and(CountedEvents { count: 2, first_ticks: 1, last_ticks: 2 });
        assert_eq!(both, CountedEvents { count: 3, first_ticks: 1, last_ticks: 20 });
    }
}
