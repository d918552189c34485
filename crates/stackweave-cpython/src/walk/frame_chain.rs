//! The differences between versions in the step from one frame to the next.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use super::cached_frame::{CachedFrame, WrittenFrame};

/// A chain of frames of some versions, and the state of a walk that the frame alone does not have: up to 3.11 the
/// `_PyCFrame` of the eval loop.
pub(super) trait FrameChain: Copy {
    /// Whether the activation of frames is only known when the walk reaches the shim that ends it.
    const HAS_SHIMS: bool;

    /// Reads a frame, and advances to the next.
    ///
    /// # Safety
    /// `frame` is the next frame of this chain, which does not change.
    unsafe fn step(&mut self, frame: u64) -> ChainStep;

    /// Returns the word that is compared to find out whether a frame still runs the same instruction of the same code
    /// object.
    ///
    /// # Safety
    /// As for [`FrameChain::step`].
    unsafe fn word(frame: u64) -> u64;

    /// Returns the address of the next frame.
    ///
    /// # Safety
    /// As for [`FrameChain::step`].
    unsafe fn previous(frame: u64) -> u64;

    /// Returns whether the eval loop of an entry is unchanged, too, and is followed by that of the next entry.
    ///
    /// # Safety
    /// The frame of the entry is the next of the chain.
    unsafe fn loop_holds(&self, entry: &CachedFrame, next: &CachedFrame) -> bool;

    /// Advances to the next frame, whose entry has this activation.
    ///
    /// # Safety
    /// The entry is valid, and so is its loop.
    unsafe fn pass(&mut self, entry: &CachedFrame, next_loop: u64);

    /// Stores the current eval loop in an entry, and advances to the next frame. Returns false if the cache has no
    /// loops, or there is none.
    ///
    /// # Safety
    /// The entry is valid, except for its loop.
    unsafe fn renew_loop(&mut self, entry: &mut CachedFrame) -> bool;

    /// Returns what to write for a valid entry.
    fn replayed(&self, entry: &CachedFrame) -> WrittenFrame;

    /// Returns the current `_PyCFrame`; 0 if there are none.
    fn c_frame(&self) -> u64;

    /// Returns the shim that ends the activation of this frame, if it can be found.
    ///
    /// # Safety
    /// As for [`FrameChain::step`].
    unsafe fn shim_beyond(&self, frame: u64) -> Option<u64>;

    /// Returns the outermost eval loop, if the frames have ended before it: then the innermost loop has no frame yet.
    /// To be called at the end of each walk.
    fn loop_without_frame(&self) -> Option<u64>;
}

/// The result of reading a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainStep {
    pub(super) previous: u64,
    /// The result of [`FrameChain::word`].
    pub(super) word: u64,
    pub(super) kind: StepKind,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum StepKind {
    /// A frame that runs Python.
    Frame(CodeFrame),
    /// The end of an activation.
    Shim,
    /// A frame that is being created, or that runs no Python.
    Hidden,
    /// Not a frame.
    Bad,
}

/// A frame that runs Python.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeFrame {
    /// The address of its code object.
    pub(super) code: u64,
    pub(super) instruction: u32,
    /// Whether native code entered it; in a chain with shims, not known yet.
    pub(super) is_entry: bool,
    /// The address on the C stack; in a chain with shims, not known yet.
    pub(super) activation: u64,
    /// Whether the same word always means the same frame.
    pub(super) is_replayable: bool,
}
