//! The results of a capture.

use stackweave_core::StopReason;

/// Identifies a stack that was captured. If the marks of two captures are equal, and the captures had an equal
/// `skip` and found as many frames, then their frames and stack pointers are the same. The default is the mark of no
/// stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct StackMark {
    /// The state of the thread that captured; 0: none.
    pub thread_state: u64,
    /// The number of the stack: a hash, or one that is used only once.
    pub number: u64,
}

impl StackMark {
    /// Set in the numbers that are used only once.
    pub(crate) const ONCE: u64 = 1 << 63;

    /// Returns whether another capture of the same stack may have the same mark.
    #[inline(always)]
    pub fn may_repeat(&self) -> bool {
        self.number != 0 && self.number & Self::ONCE == 0
    }
}

/// The result of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Number of frames that were written.
    pub len: usize,
    /// The reason why the walk ended: the stack is complete if this is [`StopReason::EndOfStack`].
    pub stop: StopReason,
}
