//! How a memory recorder is doing.

/// How a memory recorder is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Loaded modules whose calls come to hooks.
    pub modules: u64,
    /// The places in them that lead there.
    pub slots: u64,
    /// Places that somebody else has changed, and that were left alone.
    pub foreign_slots: u64,
    /// Places from which functions that allocate and free blocks are called, at the moment when another tool held most of them.
    pub block_slots: u64,
    /// Those of them that another tool held: what is allocated through them is not recorded.
    pub foreign_block_slots: u64,
    /// The file of that tool's function, where it is known.
    pub foreign_module: Option<String>,
    /// Events that were recorded.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Allocations that failed.
    pub failed_allocations: u64,
    /// Calls in a forked child before its own recording had begun: not recorded.
    pub before_begun: u64,
    /// Recordings before this one that a thread never left: the memory that they need for an event is not freed.
    pub left_over: u64,
}
