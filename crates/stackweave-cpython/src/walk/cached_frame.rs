//! A cached frame of the last stack.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::{RawFrame, StackPointer};

use super::frame_chain::{ChainStep, CodeFrame, StepKind};

/// The output of a walk for one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct WrittenFrame {
    pub(super) frame: RawFrame,
    pub(super) activation: StackPointer,
}

/// A frame of the last stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct CachedFrame {
    pub(super) address: u64,
    /// The word of a frame that was written, the inverse of that of a shim, [`NEVER`] for a frame that must be read in
    /// each walk.
    pub(super) word: u64,
    /// The output for the frame; the default for a frame that is not written.
    pub(super) written: WrittenFrame,
}

/// A value that no frame's word has.
const NEVER: u64 = 1;

impl CachedFrame {
    pub(super) fn new(address: u64, step: &ChainStep) -> Self {
        let word = match step.kind {
            StepKind::Frame(CodeFrame { is_replayable: true, .. }) => step.word,
            StepKind::Shim => !step.word,
            _ => NEVER,
        };
        Self { address, word, written: WrittenFrame::default() }
    }

    /// Returns whether something was written for the frame.
    #[inline(always)]
    pub(super) fn is_written(&self) -> bool {
        self.written.frame != RawFrame::default()
    }

    /// Returns whether a step has the same kind: a frame that is written, a shim, or a frame that is not written.
    #[inline(always)]
    pub(super) fn has_kind(&self, kind: StepKind) -> bool {
        match kind {
            StepKind::Frame(_) => self.is_written(),
            StepKind::Shim => !self.is_written() && self.word != NEVER,
            StepKind::Hidden => !self.is_written() && self.word == NEVER,
            StepKind::Bad => false,
        }
    }
}
