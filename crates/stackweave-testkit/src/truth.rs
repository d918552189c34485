//! The true stack where no unwinder can find all of it.

use stackweave_unwind::CodeAddress;

use crate::oracles::libgcc::{self, function_start};

/// The known facts about one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownFrame {
    /// Its address.
    Exactly(CodeAddress),
    /// The function it is in, by its first byte; the function has an unwind entry.
    Within(u64),
}

impl KnownFrame {
    fn admits(self, frame: CodeAddress) -> bool {
        match self {
            Self::Exactly(address) => frame.address() == address.address(),
            Self::Within(function) => function_start(frame) == function,
        }
    }
}

/// Returns what is known of the caller's stack: its frames during the caller's next call.
#[inline(never)]
pub fn outward_from_here() -> Vec<KnownFrame> {
    let mut frames = vec![CodeAddress::default(); 512];
    let captured = libgcc::capture(&mut frames, &mut [], 1);
    let frames = &frames[..captured.len];
    let own = KnownFrame::Within(function_start(frames[0]));
    std::iter::once(own).chain(frames[1..].iter().map(|&frame| KnownFrame::Exactly(frame))).collect()
}

/// Returns the index of the first of `frames` that is not in the true stack, in order. Frames may be missing,
/// which the stop reason has to state. Async-signal-safe.
pub fn first_untrue(frames: &[CodeAddress], truth: &[KnownFrame]) -> Option<usize> {
    let mut rest = truth.iter();
    frames.iter().position(|&frame| !rest.any(|known| known.admits(frame)))
}

/// Returns whether `frames` are the complete true stack.
pub fn is_complete(frames: &[CodeAddress], truth: &[KnownFrame]) -> bool {
    frames.len() == truth.len() && frames.iter().zip(truth).all(|(&frame, known)| known.admits(frame))
}
