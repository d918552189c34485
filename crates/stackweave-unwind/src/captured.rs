//! What a capture returns.

use stackweave_core::StopReason;

/// The result of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// How many frames were written.
    pub len: usize,
    /// Why the walk ended: the stack is whole if this is [`StopReason::EndOfStack`].
    pub stop: StopReason,
}
