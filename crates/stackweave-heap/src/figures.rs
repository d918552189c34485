//! The figures of a ledger.

/// A call site of allocations. The numbers are defined by the user of the ledger; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSite {
    /// The stack.
    pub stack: u32,
    /// The thread.
    pub thread: u32,
    /// The allocator.
    pub allocator: u32,
    /// The tag.
    pub tag: u32,
}

/// The memory of a call site. In a sampled recording these are estimates.
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
    /// Blocks that were live at the peak of the sum over all call sites.
    pub peak_blocks: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// Allocations whose block was freed before their thread had allocated many others.
    pub temporary: u64,
    /// Their bytes.
    pub temporary_bytes: u64,
}

impl Figures {
    /// Returns the figures in the order of the fields, as recordings store them.
    pub const fn to_array(&self) -> [u64; 8] {
        let Self { allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes } =
            *self;
        [allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes]
    }

    /// Returns the figures of [`Figures::to_array`].
    pub const fn from_array(figures: [u64; 8]) -> Self {
        let [allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes] =
            figures;
        Self { allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes }
    }
}

/// The memory of all call sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The sums over all call sites.
    pub figures: Figures,
    /// The time at which the peak was reached.
    pub peak_ticks: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Frees of blocks whose allocation was not recorded.
    pub unknown_frees: u64,
    /// Allocations at an address of a live block, which then counts as freed.
    pub replaced: u64,
}
