//! What is recorded of what happens, and how much was not.

use std::cell::Cell;

/// The limits of a trace; the times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Shorter calls are left out.
    pub(crate) min_duration: u64,
    /// Deeper calls are left out.
    pub(crate) max_depth: usize,
    /// What begins after that many events is left out.
    pub(crate) max_events: u64,
}

impl Limits {
    /// Nothing is left out.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self { min_duration: 0, max_depth: usize::MAX, max_events: u64::MAX };
}

/// The limits, and what came of them. Guarded by the GIL.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) limits: Limits,
    /// Events that were recorded, where `max_events` asks for that.
    pub(crate) events: Cell<u64>,
    /// How often a thread was not where it should have been.
    pub(crate) repairs: Cell<u64>,
    /// Ends of what nobody saw begin.
    pub(crate) ignored_ends: Cell<u64>,
    /// Calls that were recorded after their begin, when they were known to be long enough.
    pub(crate) late: Cell<u64>,
    /// Calls that were too short or too deep.
    pub(crate) hidden: Cell<u64>,
    /// Calls that came after the last event that there was room for.
    pub(crate) dropped: Cell<u64>,
}

impl Rules {
    pub(crate) const fn new(limits: Limits) -> Self {
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

    /// Counts from anew.
    pub(crate) fn forget(&self) {
        for counter in [&self.events, &self.repairs, &self.ignored_ends, &self.late, &self.hidden, &self.dropped] {
            counter.set(0);
        }
    }
}

/// One more.
pub(crate) fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}
