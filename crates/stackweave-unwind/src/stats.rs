//! What all captures of the process came to.

use stackweave_core::StopReason;

/// How unloaded libraries are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnloadWatch {
    /// Two counters of the loader are read at each capture.
    Counters,
    /// The loader is asked at each capture: its counters were not found.
    AskLoader,
    /// Nothing is ever unloaded: a static program, or a C library that keeps everything.
    NeverUnloads,
}

/// Totals over all threads since the process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Frames whose rule was found in a cache, or that were confirmed as unchanged.
    pub hits: u64,
    /// Frames whose rule had to be read from unwind tables.
    pub misses: u64,
    /// Frames that no compact rule can express: the general evaluator stepped through them.
    pub unsupported: u64,
    /// Times a thread dropped its rules because a library was unloaded.
    pub resets: u64,
    /// Captures by why they ended, indexed by `StopReason as usize`.
    pub stops: [u64; StopReason::ALL.len()],
    /// How unloaded libraries are noticed in this process.
    pub unload_watch: UnloadWatch,
}

impl Stats {
    /// How many captures ended for `reason`.
    pub fn stopped_by(&self, reason: StopReason) -> u64 {
        self.stops[reason as usize]
    }

    /// No captures yet.
    pub(crate) const fn none(unload_watch: UnloadWatch) -> Self {
        Self { hits: 0, misses: 0, unsupported: 0, resets: 0, stops: [0; StopReason::ALL.len()], unload_watch }
    }

    /// How many captures there were.
    pub fn captures(&self) -> u64 {
        self.stops.iter().sum()
    }
}
