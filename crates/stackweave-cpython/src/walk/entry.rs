//! A frame of the last stack.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::{RawFrame, StackPointer};

use super::form::{Frame, Step, What};

/// What a walk writes for a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Written {
    pub(super) frame: RawFrame,
    pub(super) activation: StackPointer,
}

/// A frame of the last stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) address: u64,
    /// The word of a frame that was written, the inverse of that of a shim, [`NEVER`] of a frame that must always be
    /// looked at.
    pub(super) word: u64,
    /// What was written; the default for a frame that was not.
    pub(super) written: Written,
}

/// No frame's word.
const NEVER: u64 = 1;

impl Entry {
    pub(super) fn new(address: u64, step: &Step) -> Self {
        let word = match step.what {
            What::Frame(Frame { is_replayable: true, .. }) => step.word,
            What::Shim => !step.word,
            _ => NEVER,
        };
        Self { address, word, written: Written::default() }
    }

    /// Whether something was written for the frame.
    #[inline(always)]
    pub(super) fn is_written(&self) -> bool {
        self.written.frame != RawFrame::default()
    }

    /// Whether the frame is of the same kind: one that is written, a shim, or one that is not written.
    #[inline(always)]
    pub(super) fn is_like(&self, what: What) -> bool {
        match what {
            What::Frame(_) => self.is_written(),
            What::Shim => !self.is_written() && self.word != NEVER,
            What::Hidden => !self.is_written() && self.word == NEVER,
            What::Bad => false,
        }
    }
}
