//! The unwinder under test, with the signatures of its public API.
//!
//! It is Stackweave's, unless `STACKWEAVE_TEST_SUBJECT=libgcc` selects libgcc's.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering};

use stackweave_unwind::{Captured, CodeAddress, StackPointer};

use crate::oracles::libgcc;

const UNKNOWN: u8 = 0;
const STACKWEAVE: u8 = 1;
const LIBGCC: u8 = 2;
static SUBJECT: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Returns whether libgcc replaces Stackweave. The first call reads the environment; later calls are
/// async-signal-safe.
pub fn is_libgcc() -> bool {
    if SUBJECT.load(Ordering::Relaxed) == UNKNOWN {
        let libgcc = std::env::var_os("STACKWEAVE_TEST_SUBJECT").is_some_and(|name| name == "libgcc");
        SUBJECT.store(if libgcc { LIBGCC } else { STACKWEAVE }, Ordering::Relaxed);
    }
    SUBJECT.load(Ordering::Relaxed) == LIBGCC
}

/// Calls `stackweave_unwind::capture` or its replacement.
#[inline(always)]
pub fn capture(frames: &mut [CodeAddress], skip: usize) -> Captured {
    if is_libgcc() { libgcc::capture(frames, &mut [], skip) } else { stackweave_unwind::capture(frames, skip) }
}

/// Calls `stackweave_unwind::capture_with_stack_pointers` or its replacement.
#[inline(always)]
pub fn capture_with_stack_pointers(
    frames: &mut [CodeAddress],
    stack_pointers: &mut [StackPointer],
    skip: usize,
) -> Captured {
    if is_libgcc() {
        let limit = frames.len().min(stack_pointers.len());
        libgcc::capture(&mut frames[..limit], stack_pointers, skip)
    } else {
        stackweave_unwind::capture_with_stack_pointers(frames, stack_pointers, skip)
    }
}

/// Calls `stackweave_unwind::capture_from_context` or its replacement.
///
/// # Safety
/// `context` is that of the signal handler that is running on this thread.
#[inline(always)]
pub unsafe fn capture_from_context(context: *const c_void, frames: &mut [CodeAddress], skip: usize) -> Captured {
    if is_libgcc() {
        libgcc::capture_interrupted(frames, skip)
    } else {
        // SAFETY: the caller makes the same promise.
        unsafe { stackweave_unwind::capture_from_context(context, frames, None, skip) }
    }
}
