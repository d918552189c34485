//! Statistics of a memory recorder.

/// Statistics of a memory recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Loaded modules with calls that reach hooks.
    pub modules: u64,
    /// Slots of these modules that hold a hook.
    pub slots: u64,
    /// Slots that another tool has changed; they are left alone.
    pub foreign_slots: u64,
    /// Slots of functions that allocate or free blocks, at the moment when another tool held the largest share of them.
    pub block_slots: u64,
    /// Those of `block_slots` that another tool held: allocations through them are not recorded.
    pub foreign_block_slots: u64,
    /// The file of that tool's function, if known.
    pub foreign_module: Option<String>,
    /// Events that were recorded.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Allocations that failed.
    pub failed_allocations: u64,
    /// Calls in a forked child before its own recording began: not recorded.
    pub before_begun: u64,
    /// Earlier recordings that a thread never left: the memory that their events use is not freed.
    pub left_over: u64,
}
