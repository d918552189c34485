//! An interpreter with one frame, whose word is its line.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use stackweave_capture::{FrameSource, RawFrame, SourceStop};
use stackweave_core::{
    RawFrameKind, SourceKind, SourceLocation, SourceWalk, SourceWalkResult, StackPointer, write_location,
};

/// The line; 0: no frame is running.
pub(crate) static WORD: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Interpreter;

impl FrameSource for Interpreter {
    fn kind(&self) -> SourceKind {
        SourceKind::Script
    }

    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalkResult {
        let word = WORD.load(Ordering::SeqCst);
        walk.frames[0] = RawFrame::script(walk.source, word.into());
        walk.activations[0] = StackPointer(0);
        SourceWalkResult { len: usize::from(word != 0), stop: SourceStop::EndOfStack, ..SourceWalkResult::default() }
    }

    fn locate(&self, _frame: RawFrame) -> Option<SourceLocation> {
        None
    }

    fn write(&self, frame: RawFrame, out: &mut dyn fmt::Write) -> fmt::Result {
        let RawFrameKind::Script { word, .. } = frame.kind() else { return Err(fmt::Error) };
        write_location(out, &"a script", u32::try_from(word).ok(), &"word")
    }
}
