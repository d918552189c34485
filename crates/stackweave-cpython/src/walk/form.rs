//! What differs between versions when a walk goes from one frame to the next.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use super::entry::{Entry, Written};

/// How the frames of some versions hang together, and where in the chain the walk is as far as the frame alone does not
/// say: up to 3.11 that is the `_PyCFrame` of the eval loop.
pub(super) trait Form: Copy {
    /// Whether frames learn their activation only when the shim that ends it is met.
    const HAS_SHIMS: bool;

    /// Reads a frame and goes on to the next.
    ///
    /// # Safety
    /// `frame` is the next frame of the chain that this form walks, which stays as it is.
    unsafe fn step(&mut self, frame: u64) -> Step;

    /// What is compared to see whether a frame still runs the same instruction of the same code object.
    ///
    /// # Safety
    /// As for [`Form::step`].
    unsafe fn word(frame: u64) -> u64;

    /// The address of the next frame.
    ///
    /// # Safety
    /// As for [`Form::step`].
    unsafe fn previous(frame: u64) -> u64;

    /// Whether the eval loop of an entry, too, is what it was, and leads to that of the next.
    ///
    /// # Safety
    /// The frame of the entry is the next of the chain.
    unsafe fn loop_holds(&self, entry: &Entry, next: &Entry) -> bool;

    /// Goes on to the next frame, whose entry has this activation.
    ///
    /// # Safety
    /// The entry holds, and its loop does.
    unsafe fn pass(&mut self, entry: &Entry, next_loop: u64);

    /// Puts the eval loop that the form stands at into an entry, and goes on to the next frame. False where the record
    /// has no loops, or there is none.
    ///
    /// # Safety The entry holds, but for its loop.
    unsafe fn renew_loop(&mut self, entry: &mut Entry) -> bool;

    /// What to write for an entry that holds.
    fn replayed(&self, entry: &Entry) -> Written;

    /// The `_PyCFrame` that the form stands at; 0 where there are none.
    fn c_frame(&self) -> u64;

    /// The shim that ends the activation of this frame, as far as it can be found.
    ///
    /// # Safety
    /// As for [`Form::step`].
    unsafe fn shim_beyond(&self, frame: u64) -> Option<u64>;

    /// The outermost eval loop, if the frames have ended before it: the innermost has no frame yet. To be asked at the
    /// end of each walk.
    fn loop_without_frame(&self) -> Option<u64>;
}

/// A frame as the walk met it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) previous: u64,
    /// What [`Form::word`] says of it.
    pub(super) word: u64,
    pub(super) what: What,
}

/// What a frame is.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// One that runs Python.
    Frame(Frame),
    /// The end of an activation.
    Shim,
    /// A frame that is being made, or that runs no Python.
    Hidden,
    /// None at all.
    Bad,
}

/// A frame that runs Python.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The address of its code object.
    pub(super) code: u64,
    pub(super) instruction: u32,
    /// Whether native code entered it; with shims, not known yet.
    pub(super) is_entry: bool,
    /// The address on the C stack; with shims, not known yet.
    pub(super) activation: u64,
    /// Whether the same word will always mean the same frame.
    pub(super) is_replayable: bool,
}
