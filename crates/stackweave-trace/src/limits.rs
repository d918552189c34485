//! The limits of what is recorded, and counts of what is not.

use std::cell::Cell;

/// The limits of a trace; times are in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceLimits {
    /// Shorter calls are not recorded.
    pub(crate) min_duration: u64,
    /// Deeper calls are not recorded.
    pub(crate) max_depth: usize,
    /// Calls that begin after that many events are not recorded.
    pub(crate) max_events: u64,
}

impl TraceLimits {
    /// No limits.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self { min_duration: 0, max_depth: usize::MAX, max_events: u64::MAX };
}

/// The limits, and the counts of events that they affect. Guarded by the GIL.
#[derive(Debug)]
pub(crate) struct CountedLimits {
    pub(crate) limits: TraceLimits,
    /// Events that were recorded, if `max_events` is set.
    pub(crate) events: Cell<u64>,
    /// The number of times that the shadow stack of a thread differed from the real one.
    pub(crate) repairs: Cell<u64>,
    /// Ends of calls whose begin had no event.
    pub(crate) ignored_ends: Cell<u64>,
    /// Calls that were recorded after their start, once they were known to be long enough.
    pub(crate) late: Cell<u64>,
    /// Calls that were too short or too deep.
    pub(crate) hidden: Cell<u64>,
    /// Calls that came after `max_events`.
    pub(crate) dropped: Cell<u64>,
}

impl CountedLimits {
    pub(crate) const fn new(limits: TraceLimits) -> Self {
        Self {
            limits,
            events: Cell::new(0),
            repairs: Cell::new(0),
            ignored_ends: Cell::new(0),
            late: Cell::new(0),
            hidden: Cell::new(0),
            dropped: Cell::new(0),
        }
    }

    /// Resets all counts.
    pub(crate) fn reset(&self) {
        for counter in [&self.events, &self.repairs, &self.ignored_ends, &self.late, &self.hidden, &self.dropped] {
            counter.set(0);
        }
    }
}

/// Increments a counter.
pub(crate) fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}
