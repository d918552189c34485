//! What an interpreter, or a code generator, contributes to a stack.
//!
//! Neither is linked against: each registers itself with whoever captures.

use core::fmt;

use crate::{CodeId, RawFrame, SourceLocation, SourceStop, StackPointer};

/// An interpreter whose frames belong into captured stacks.
pub trait FrameSource: Send + Sync {
    /// Whether its frames are Python's or another language's.
    fn kind(&self) -> SourceKind;

    /// Writes the frames of the calling thread, innermost first.
    ///
    /// Called inside every capture: inside allocators, with anybody's locks held, with the interpreter's lock or
    /// without, in signal handlers ([`SourceWalk::in_signal_handler`]). So it takes no lock, allocates nothing and
    /// calls nobody back, unless it knows that it may. A capture inside it works, and asks it again.
    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalked;

    /// What a frame is that this source has written. Called later, on any thread, never inside a capture.
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation>;

    /// Writes what a frame is, on one line, for the dump of a program that hangs: [`write_place`](crate::write_place)
    /// has the form. Async-signal-safe: no allocation, no lock, no call back. Whoever knows of no way writes the bare word.
    fn write(&self, frame: RawFrame, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{frame:?}")
    }

    /// Writes the parts of a frame for a program to read: name, qualname, file, line and first line, with
    /// [`PART_SEPARATOR`] between them; of what is not known nothing. No part has a control character in it. Whether it knows
    /// the frame: if not, nothing is written. Async-signal-safe, as [`FrameSource::write`].
    fn write_parts(&self, frame: RawFrame, out: &mut dyn fmt::Write) -> Result<bool, fmt::Error> {
        let _ = (frame, out);
        Ok(false)
    }
}

/// What stands between the parts of a frame in [`FrameSource::write_parts`].
pub const PART_SEPARATOR: char = '\u{1f}';

/// Which frames a source writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// [`RawFrame::python`].
    Python,
    /// [`RawFrame::script`].
    Script,
}

/// What a source gets for one walk.
#[derive(Debug)]
pub struct SourceWalk<'a> {
    /// Where the frames go, innermost first. Its length is the depth limit.
    pub frames: &'a mut [RawFrame],
    /// Where on the C stack they run; as long as `frames`. An address that belongs to the native frame which runs the
    /// frame: it stands just inside that native frame. Addresses grow outward. Zero where it is not known: the frame
    /// then follows the one before it, and the first is the innermost of the whole stack.
    pub activations: &'a mut [StackPointer],
    /// The source's own on this thread: zeros at first, then what the last walk left there. A guess, not a promise: the
    /// memory of a thread that has ended is handed on to another.
    pub memory: &'a mut [u64],
    /// Which number the source has in [`RawFrame::script`].
    pub source: u8,
    /// Whether the capture runs in a signal handler, which may have interrupted the interpreter anywhere.
    pub in_signal_handler: bool,
}

/// The result of one walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceWalked {
    /// How many frames were written.
    pub len: usize,
    /// Why the walk ended.
    pub stop: SourceStop,
    /// Where the frames stand, if not by their activations: just inside the innermost Python frame that runs this
    /// code. Innermost of all if there is no such frame.
    pub inside: Option<CodeId>,
    /// Whether frames and activations are known to be those of the last walk with the same memory, if that came to the end of
    /// the stack and wrote as many. A source that does not know says no.
    pub is_unchanged: bool,
}

/// A code generator that knows what its generated code was made from.
pub trait ExtraFrames: Send + Sync {
    /// The original frames, innermost first, that stand behind this line of a generated file; none if the file is not
    /// its own. Called when stacks are resolved, never inside a capture.
    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation>;
}
