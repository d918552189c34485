//! What a capture returns.

use stackweave_core::StopReason;

/// Which stack a thread has captured last. Equal marks of a thread, taken right after two captures with equal buffers and
/// equal `skip`, that found as many frames: these are the same, and so are their stack pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastStackMark {
    /// Whose record it is.
    pub of: u64,
    /// Changes when the record does.
    pub version: u64,
}

/// The result of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// How many frames were written.
    pub len: usize,
    /// Why the walk ended: the stack is whole if this is [`StopReason::EndOfStack`].
    pub stop: StopReason,
}
