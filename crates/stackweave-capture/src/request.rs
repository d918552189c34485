//! The request for a capture, and its result.

use core::fmt;
use core::ops::Range;

use stackweave_core::{SourceStop, StackId, StackPointer, StopReason};

/// The options of a capture. By default it captures everything, from the caller outward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureRequest {
    /// Whether to capture Python frames.
    pub python: bool,
    /// Whether to capture native frames.
    pub native: bool,
    /// Whether to capture frames of other interpreters.
    pub script: bool,
    /// Number of innermost frames to omit.
    pub skip: usize,
    /// Maximum number of frames to keep, innermost first.
    pub limit: usize,
    /// The frame at which the stack begins, before `skip`.
    pub start: CaptureStart,
}

impl Default for CaptureRequest {
    fn default() -> Self {
        Self { python: true, native: true, script: true, skip: 0, limit: usize::MAX, start: CaptureStart::Caller }
    }
}

/// The frame at which a captured stack begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureStart {
    /// With the function that calls `capture`.
    Caller,
    /// With the innermost function whose code is not in this range: a library omits its own frames.
    OutsideOf(Range<u64>),
    /// With the caller of the function whose stack frame contains this address, for example that of a local
    /// variable: a library omits the function by which it was called, and all calls inside it, independent of
    /// inlining and linking. The same as `Caller` if no frame contains it.
    CallerOf(StackPointer),
    /// With the innermost Python frame: native code inside it, by which it called for the capture, is omitted. The
    /// same as `Caller` if there is no Python frame.
    PythonCaller,
}

/// A captured stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The stack. `None` if it is new, and there is no memory or no number left for it.
    pub stack: Option<StackId>,
    /// The reason why the walk of the native stack ended. [`StopReason::EndOfStack`] if it was not requested.
    pub native_stop: StopReason,
    /// The reason why the walk of an interpreter's frames ended: the first incomplete one, in the order of
    /// registration.
    pub source_stop: SourceStop,
    /// Whether frames were omitted because of [`CaptureRequest::limit`].
    pub is_cut: bool,
}

impl Capture {
    /// Returns why the stack is incomplete; `None` if it is complete. The stack of a thread without an
    /// interpreter's state is complete without its frames.
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

/// The reason why a stack is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stop {
    /// [`CaptureRequest::limit`] was reached.
    Limit,
    /// The native walk ended early.
    Native(StopReason),
    /// The walk of an interpreter's frames ended early.
    Source(SourceStop),
}

impl Stop {
    /// Returns a short description of the reason.
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
    fn a_stack_is_complete_unless_something_cut_it() {
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
