//! The true stack where no unwinder can tell it: known piece by piece.

use stackweave_unwind::CodeAddress;

use crate::oracles::libgcc::{self, function_start};

/// What is known of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Its address.
    Exactly(CodeAddress),
    /// The function it is in, by its first byte; the function has an unwind entry.
    Within(u64),
}

impl Known {
    fn admits(self, frame: CodeAddress) -> bool {
        match self {
            Self::Exactly(address) => frame.address() == address.address(),
            Self::Within(function) => function_start(frame) == function,
        }
    }
}

/// The caller's stack: what is known of the frames that its next call will leave below the new one.
#[inline(never)]
pub fn outward_from_here() -> Vec<Known> {
    let mut frames = vec![CodeAddress::default(); 512];
    let captured = libgcc::capture(&mut frames, &mut [], 1);
    let frames = &frames[..captured.len];
    let own = Known::Within(function_start(frames[0]));
    std::iter::once(own).chain(frames[1..].iter().map(|&frame| Known::Exactly(frame))).collect()
}

/// The first of `frames` that is not in the true stack, in order. Frames may be missing: that is the stop
/// reason's to say. Async-signal-safe.
pub fn first_untrue(frames: &[CodeAddress], truth: &[Known]) -> Option<usize> {
    let mut rest = truth.iter();
    frames.iter().position(|&frame| !rest.any(|known| known.admits(frame)))
}

/// Whether `frames` are the whole of the true stack.
pub fn is_whole(frames: &[CodeAddress], truth: &[Known]) -> bool {
    frames.len() == truth.len() && frames.iter().zip(truth).all(|(&frame, known)| known.admits(frame))
}
