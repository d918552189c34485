//! Why a stack is not whole.

use std::ffi::{CStr, c_char};

use stackweave_capture::{Capture, SourceStop, Stop, StopReason};

/// Why a captured stack is not whole. More may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum stackweave_stop {
    /// It is whole. A thread that no interpreter knows is whole without its frames.
    STACKWEAVE_WHOLE = 0,
    /// The request's limit was reached.
    STACKWEAVE_STOP_LIMIT = 1,
    /// A reason that this version has no number for.
    STACKWEAVE_STOP_OTHER = 2,
    /// Native: an address in no loaded module.
    STACKWEAVE_STOP_NO_MODULE = 16,
    /// Native: no unwind entry for an address.
    STACKWEAVE_STOP_NO_UNWIND_ENTRY = 17,
    /// Native: unwind tables that can't be understood.
    STACKWEAVE_STOP_UNSUPPORTED_RULE = 18,
    /// Native: a frame outside the stack.
    STACKWEAVE_STOP_BAD_MEMORY = 19,
    /// Native: more than 65,536 frames.
    STACKWEAVE_STOP_DEPTH_LIMIT = 20,
    /// Native: stacks can't be captured on this platform.
    STACKWEAVE_STOP_UNSUPPORTED_PLATFORM = 21,
    /// Interpreter: more frames than there is room for.
    STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT = 32,
    /// Interpreter: an implausible frame.
    STACKWEAVE_STOP_BAD_FRAME = 33,
    /// Interpreter: a signal came while it entered or left a frame.
    STACKWEAVE_STOP_INTERRUPTED = 34,
    /// Interpreter: it is shutting down.
    STACKWEAVE_STOP_FINALIZING = 35,
    /// Interpreter: its frames can only be read with its lock, which the thread does not hold.
    STACKWEAVE_STOP_NO_GIL = 36,
    /// Interpreter: no memory for a new code object.
    STACKWEAVE_STOP_SOURCE_NO_MEMORY = 37,
}

use stackweave_stop::{
    STACKWEAVE_STOP_BAD_FRAME, STACKWEAVE_STOP_BAD_MEMORY, STACKWEAVE_STOP_DEPTH_LIMIT, STACKWEAVE_STOP_FINALIZING,
    STACKWEAVE_STOP_INTERRUPTED, STACKWEAVE_STOP_LIMIT, STACKWEAVE_STOP_NO_GIL, STACKWEAVE_STOP_NO_MODULE,
    STACKWEAVE_STOP_NO_UNWIND_ENTRY, STACKWEAVE_STOP_OTHER, STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT,
    STACKWEAVE_STOP_SOURCE_NO_MEMORY, STACKWEAVE_STOP_UNSUPPORTED_PLATFORM, STACKWEAVE_STOP_UNSUPPORTED_RULE,
    STACKWEAVE_WHOLE,
};

impl stackweave_stop {
    #[inline]
    pub(crate) fn of(captured: Capture) -> Self {
        match captured.stop() {
            None => STACKWEAVE_WHOLE,
            Some(Stop::Limit) => STACKWEAVE_STOP_LIMIT,
            Some(Stop::Native(reason)) => native(reason),
            Some(Stop::Source(reason)) => source(reason),
            Some(_) => STACKWEAVE_STOP_OTHER,
        }
    }
}

fn native(reason: StopReason) -> stackweave_stop {
    match reason {
        StopReason::NoModule => STACKWEAVE_STOP_NO_MODULE,
        StopReason::NoUnwindEntry => STACKWEAVE_STOP_NO_UNWIND_ENTRY,
        StopReason::UnsupportedRule => STACKWEAVE_STOP_UNSUPPORTED_RULE,
        StopReason::BadMemory => STACKWEAVE_STOP_BAD_MEMORY,
        StopReason::DepthLimit => STACKWEAVE_STOP_DEPTH_LIMIT,
        StopReason::UnsupportedPlatform => STACKWEAVE_STOP_UNSUPPORTED_PLATFORM,
        _ => STACKWEAVE_STOP_OTHER,
    }
}

fn source(reason: SourceStop) -> stackweave_stop {
    match reason {
        SourceStop::DepthLimit => STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT,
        SourceStop::BadFrame => STACKWEAVE_STOP_BAD_FRAME,
        SourceStop::Interrupted => STACKWEAVE_STOP_INTERRUPTED,
        SourceStop::Finalizing => STACKWEAVE_STOP_FINALIZING,
        SourceStop::NoGil => STACKWEAVE_STOP_NO_GIL,
        SourceStop::NoMemory => STACKWEAVE_STOP_SOURCE_NO_MEMORY,
        _ => STACKWEAVE_STOP_OTHER,
    }
}

/// A reason in a few words, for ever. Any number is allowed. May be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_stop_text(stop: i32) -> *const c_char {
    const TEXTS: [(stackweave_stop, &CStr); 14] = [
        (STACKWEAVE_WHOLE, c"whole"),
        (STACKWEAVE_STOP_LIMIT, c"limit reached"),
        (STACKWEAVE_STOP_NO_MODULE, c"address in no loaded module"),
        (STACKWEAVE_STOP_NO_UNWIND_ENTRY, c"no unwind entry for the address"),
        (STACKWEAVE_STOP_UNSUPPORTED_RULE, c"unsupported or malformed unwind rule"),
        (STACKWEAVE_STOP_BAD_MEMORY, c"frame outside the stack"),
        (STACKWEAVE_STOP_DEPTH_LIMIT, c"too many native frames"),
        (STACKWEAVE_STOP_UNSUPPORTED_PLATFORM, c"unsupported platform"),
        (STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT, c"too many interpreter frames"),
        (STACKWEAVE_STOP_BAD_FRAME, c"implausible frame of an interpreter"),
        (STACKWEAVE_STOP_INTERRUPTED, c"interrupted between two frames of an interpreter"),
        (STACKWEAVE_STOP_FINALIZING, c"interpreter is shutting down"),
        (STACKWEAVE_STOP_NO_GIL, c"the GIL is not held"),
        (STACKWEAVE_STOP_SOURCE_NO_MEMORY, c"no memory for a new code object"),
    ];
    let known = TEXTS.iter().find(|(known, _)| *known as i32 == stop);
    known.map_or(c"another reason", |(_, text)| *text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::StackId;

    #[test]
    fn every_reason_has_a_number_and_a_text() {
        let whole = Capture {
            stack: Some(StackId::EMPTY),
            native_stop: StopReason::EndOfStack,
            source_stop: SourceStop::EndOfStack,
            is_cut: false,
        };
        assert_eq!(stackweave_stop::of(whole), STACKWEAVE_WHOLE);
        assert_eq!(stackweave_stop::of(Capture { is_cut: true, ..whole }), STACKWEAVE_STOP_LIMIT);
        let natives = StopReason::ALL.map(|native_stop| Capture { native_stop, ..whole });
        let sources = SourceStop::ALL.map(|source_stop| Capture { source_stop, ..whole });
        for captured in natives.into_iter().chain(sources) {
            let stop = stackweave_stop::of(captured);
            assert_ne!(stop, STACKWEAVE_STOP_OTHER, "{captured:?}");
            // SAFETY: a C string that lives for ever.
            let text = unsafe { CStr::from_ptr(stackweave_stop_text(stop as i32)) };
            assert_ne!(text, c"another reason", "{captured:?}");
        }
    }
}
