//! The results of a capture.

use stackweave_core::StopReason;

/// Identifies the stack that a thread has captured last. If a thread's marks right after two captures are equal,
/// and the captures had equal buffers and `skip` and found as many frames, then their frames and stack pointers
/// are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastStackMark {
    /// The record of the last stack.
    pub thread_state: u64,
    /// Changes whenever the record does.
    pub version: u64,
}

/// The result of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Number of frames that were written.
    pub len: usize,
    /// The reason why the walk ended: the stack is complete if this is [`StopReason::EndOfStack`].
    pub stop: StopReason,
}
