//! What is asked of a capture, and what it answers.

use core::fmt;
use core::ops::Range;

use stackweave_core::{SourceStop, StackId, StackPointer, StopReason};

/// What to capture. The default is everything, from the caller outward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Python frames.
    pub python: bool,
    /// Native frames.
    pub native: bool,
    /// Frames of other interpreters.
    pub script: bool,
    /// How many of the innermost frames to leave out.
    pub skip: usize,
    /// How many frames to keep at most, innermost first.
    pub limit: usize,
    /// Where the stack begins, before `skip`.
    pub start: Start,
}

impl Default for Request {
    fn default() -> Self {
        Self { python: true, native: true, script: true, skip: 0, limit: usize::MAX, start: Start::Caller }
    }
}

/// Where a captured stack begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the function that calls `capture`.
    Caller,
    /// With the innermost function whose code is not in this range: a library leaves itself out.
    OutsideOf(Range<u64>),
    /// With the caller of the function whose stack frame holds this address, of a local variable for one: a library
    /// leaves out the function that it was called by, and all inside it, however they were inlined and linked. As
    /// `Caller` if no frame holds it.
    CallerOf(StackPointer),
    /// With the innermost Python frame: native code inside it, by which it called for the capture, is left out. As
    /// `Caller` if there is no Python frame.
    PythonCaller,
}

/// A captured stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The stack. `None`: it is new, and there is no memory or no number left for it.
    pub stack: Option<StackId>,
    /// Why the walk of the native stack ended. [`StopReason::EndOfStack`] if it was not asked for.
    pub native_stop: StopReason,
    /// Why the walk of an interpreter's frames ended: the first, in the order of registration, that is not whole.
    pub source_stop: SourceStop,
    /// Whether frames were cut off by [`Request::limit`].
    pub is_cut: bool,
}

impl Capture {
    /// Why the stack is not whole; `None` if it is. A thread that no interpreter knows is whole without its frames.
    pub fn stop(&self) -> Option<Stop> {
        if self.is_cut {
            return Some(Stop::Limit);
        }
        if self.native_stop != StopReason::EndOfStack {
            return Some(Stop::Native(self.native_stop));
        }
        match self.source_stop {
            SourceStop::EndOfStack | SourceStop::NoThreadState | SourceStop::NotInitialized => None,
            stop => Some(Stop::Source(stop)),
        }
    }
}

/// Why a stack is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stop {
    /// [`Request::limit`] was reached.
    Limit,
    /// The native walk ended early.
    Native(StopReason),
    /// The walk of an interpreter's frames ended early.
    Source(SourceStop),
}

impl Stop {
    /// The reason in a few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "limit reached",
            Self::Native(stop) => stop.as_str(),
            Self::Source(stop) => stop.as_str(),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_whole_unless_something_cut_it() {
        let whole = Capture {
            stack: Some(StackId::EMPTY),
            native_stop: StopReason::EndOfStack,
            source_stop: SourceStop::EndOfStack,
            is_cut: false,
        };
        assert_eq!(whole.stop(), None);
        assert_eq!(Capture { source_stop: SourceStop::NoThreadState, ..whole }.stop(), None);
        let bad = Capture { source_stop: SourceStop::BadFrame, ..whole };
        assert_eq!(bad.stop(), Some(Stop::Source(SourceStop::BadFrame)));
        let lost = Capture { native_stop: StopReason::NoModule, ..bad };
        assert_eq!(lost.stop().map(Stop::as_str), Some("address in no loaded module"));
        assert_eq!(Capture { is_cut: true, ..lost }.stop(), Some(Stop::Limit));
    }
}
