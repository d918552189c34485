//! Statistics of all captures of the process.

use stackweave_core::StopReason;

/// The method of detecting unloaded libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnloadWatch {
    /// Two counters of the loader are read at each capture.
    Counters,
    /// The loader is queried at each capture, because its counters were not found.
    QueryLoader,
    /// No library is ever unloaded: a static program, or a C library that keeps all libraries.
    NeverUnloads,
}

/// Totals of all threads since the process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnwindStats {
    /// Frames whose rule was found in a cache, or that were confirmed as unchanged.
    pub hits: u64,
    /// Frames whose rule had to be read from unwind tables.
    pub misses: u64,
    /// Frames that no compact rule can express, which needed the general evaluator.
    pub unsupported: u64,
    /// Number of times that a thread dropped its rules because a library was unloaded.
    pub resets: u64,
    /// Number of captures by stop reason, indexed by `StopReason as usize`.
    pub stops: [u64; StopReason::ALL.len()],
    /// The method of detecting unloaded libraries in this process.
    pub unload_watch: UnloadWatch,
}

impl UnwindStats {
    /// Returns how many captures ended for `reason`.
    pub fn stopped_by(&self, reason: StopReason) -> u64 {
        self.stops[reason as usize]
    }

    /// Returns statistics without any capture.
    pub(crate) const fn none(unload_watch: UnloadWatch) -> Self {
        Self { hits: 0, misses: 0, unsupported: 0, resets: 0, stops: [0; StopReason::ALL.len()], unload_watch }
    }

    /// Returns the number of captures.
    pub fn captures(&self) -> u64 {
        self.stops.iter().sum()
    }
}
