//! What a ledger counts.

/// Where memory was allocated. The numbers are those of the ledger's owner; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The stack.
    pub stack: u32,
    /// The thread.
    pub thread: u32,
    /// The allocator.
    pub allocator: u32,
    /// The tag.
    pub tag: u32,
}

/// How much memory a place has used. Of a recording that samples these are estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Allocations.
    pub allocations: u64,
    /// The bytes of all allocations.
    pub bytes: u64,
    /// Blocks that are not freed.
    pub live_blocks: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Blocks that were live when the sum over all places was highest.
    pub peak_blocks: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// Allocations whose block was freed before their thread had allocated many others.
    pub temporary: u64,
    /// Their bytes.
    pub temporary_bytes: u64,
}

/// How much memory all places have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The sums over all places.
    pub figures: Figures,
    /// When the peak was reached.
    pub peak_ticks: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Frees of blocks whose allocation was not recorded.
    pub unknown_frees: u64,
    /// Blocks that were allocated where one was live already, which counts as freed.
    pub replaced: u64,
}
