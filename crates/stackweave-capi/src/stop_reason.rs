//! The reason why a captured stack is incomplete.

use std::ffi::{CStr, c_char};

use stackweave_capture::{Capture, SourceStop, Stop, StopReason};

/// The reason why a captured stack is incomplete. Later versions may add reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum stackweave_stop_reason {
    /// The stack is complete. The stack of a thread without interpreter frames is complete without them.
    STACKWEAVE_STOP_NONE = 0,
    /// The request's limit was reached.
    STACKWEAVE_STOP_LIMIT = 1,
    /// Another reason, which has no number in this version.
    STACKWEAVE_STOP_OTHER = 2,
    /// Native: an address in no loaded module.
    STACKWEAVE_STOP_NO_MODULE = 16,
    /// Native: no unwind entry for an address.
    STACKWEAVE_STOP_NO_UNWIND_ENTRY = 17,
    /// Native: unsupported or malformed unwind tables.
    STACKWEAVE_STOP_UNSUPPORTED_RULE = 18,
    /// Native: a frame outside the stack.
    STACKWEAVE_STOP_BAD_MEMORY = 19,
    /// Native: more than 65,536 frames.
    STACKWEAVE_STOP_DEPTH_LIMIT = 20,
    /// Native: captures are not supported on this platform.
    STACKWEAVE_STOP_UNSUPPORTED_PLATFORM = 21,
    /// Interpreter: more frames than fit into the buffer.
    STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT = 32,
    /// Interpreter: an invalid frame.
    STACKWEAVE_STOP_BAD_FRAME = 33,
    /// Interpreter: a signal interrupted it while it entered or left a frame.
    STACKWEAVE_STOP_INTERRUPTED = 34,
    /// Interpreter: it is shutting down.
    STACKWEAVE_STOP_FINALIZING = 35,
    /// Interpreter: its frames can be read only with the GIL, which the thread does not hold.
    STACKWEAVE_STOP_NO_GIL = 36,
    /// Interpreter: no memory for a new code object.
    STACKWEAVE_STOP_SOURCE_NO_MEMORY = 37,
}

use stackweave_stop_reason::{
    STACKWEAVE_STOP_BAD_FRAME, STACKWEAVE_STOP_BAD_MEMORY, STACKWEAVE_STOP_DEPTH_LIMIT, STACKWEAVE_STOP_FINALIZING,
    STACKWEAVE_STOP_INTERRUPTED, STACKWEAVE_STOP_LIMIT, STACKWEAVE_STOP_NO_GIL, STACKWEAVE_STOP_NO_MODULE,
    STACKWEAVE_STOP_NO_UNWIND_ENTRY, STACKWEAVE_STOP_NONE, STACKWEAVE_STOP_OTHER, STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT,
    STACKWEAVE_STOP_SOURCE_NO_MEMORY, STACKWEAVE_STOP_UNSUPPORTED_PLATFORM, STACKWEAVE_STOP_UNSUPPORTED_RULE,
};

impl stackweave_stop_reason {
    #[inline]
    pub(crate) fn of(captured: Capture) -> Self {
        match captured.stop() {
            None => STACKWEAVE_STOP_NONE,
            Some(Stop::Limit) => STACKWEAVE_STOP_LIMIT,
            Some(Stop::Native(reason)) => native(reason),
            Some(Stop::Source(reason)) => source(reason),
            Some(_) => STACKWEAVE_STOP_OTHER,
        }
    }
}

fn native(reason: StopReason) -> stackweave_stop_reason {
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

fn source(reason: SourceStop) -> stackweave_stop_reason {
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

/// Returns a short description of a reason, which is never freed. Any number is allowed. May be called anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_stop_reason_text(stop: i32) -> *const c_char {
    const TEXTS: [(stackweave_stop_reason, &CStr); 14] = [
        (STACKWEAVE_STOP_NONE, c"complete"),
        (STACKWEAVE_STOP_LIMIT, c"limit reached"),
        (STACKWEAVE_STOP_NO_MODULE, c"address in no loaded module"),
        (STACKWEAVE_STOP_NO_UNWIND_ENTRY, c"no unwind entry for the address"),
        (STACKWEAVE_STOP_UNSUPPORTED_RULE, c"unsupported or malformed unwind rule"),
        (STACKWEAVE_STOP_BAD_MEMORY, c"frame outside the stack"),
        (STACKWEAVE_STOP_DEPTH_LIMIT, c"too many native frames"),
        (STACKWEAVE_STOP_UNSUPPORTED_PLATFORM, c"unsupported platform"),
        (STACKWEAVE_STOP_SOURCE_DEPTH_LIMIT, c"too many interpreter frames"),
        (STACKWEAVE_STOP_BAD_FRAME, c"invalid interpreter frame"),
        (STACKWEAVE_STOP_INTERRUPTED, c"interrupted between two interpreter frames"),
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
        let complete = Capture {
            stack: Some(StackId::EMPTY),
            native_stop: StopReason::EndOfStack,
            source_stop: SourceStop::EndOfStack,
            is_cut: false,
        };
        assert_eq!(stackweave_stop_reason::of(complete), STACKWEAVE_STOP_NONE);
        assert_eq!(stackweave_stop_reason::of(Capture { is_cut: true, ..complete }), STACKWEAVE_STOP_LIMIT);
        let natives = StopReason::ALL.map(|native_stop| Capture { native_stop, ..complete });
        let sources = SourceStop::ALL.map(|source_stop| Capture { source_stop, ..complete });
        for captured in natives.into_iter().chain(sources) {
            let stop = stackweave_stop_reason::of(captured);
            assert_ne!(stop, STACKWEAVE_STOP_OTHER, "{captured:?}");
            // SAFETY: a static C string.
            let text = unsafe { CStr::from_ptr(stackweave_stop_reason_text(stop as i32)) };
            assert_ne!(text, c"another reason", "{captured:?}");
        }
    }
}
