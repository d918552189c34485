//! Walks with code ids from signal handlers.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use stackweave_core::{FrameSource, RawFrame, SourceStop, SourceWalk, StackPointer};

use crate::signals::DEPTH;
use crate::sources::source;

/// The frames that the last handler read.
struct LastSourceFrames(UnsafeCell<([RawFrame; DEPTH], [StackPointer; DEPTH])>);

// SAFETY: handlers and their readers run in one thread, one after the other.
unsafe impl Sync for LastSourceFrames {}

static LAST_FRAMES: LastSourceFrames =
    LastSourceFrames(UnsafeCell::new(([RawFrame::script(0, 0); DEPTH], [StackPointer(0); DEPTH])));
static LEN: AtomicUsize = AtomicUsize::new(0);
static COMPLETE: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the signal is blocked while its handler runs, and only one thread gets it.
    let (frames, activations) = unsafe { &mut *LAST_FRAMES.0.get() };
    // The handler may have interrupted a walk that uses this thread's memory.
    let walked = source().walk(SourceWalk { frames, activations, memory: &mut [], source: 0, in_signal_handler: true });
    LEN.store(walked.len, Ordering::Relaxed);
    if walked.stop == SourceStop::EndOfStack {
        COMPLETE.fetch_add(1, Ordering::Relaxed);
    }
}

/// Installs a raw handler that walks.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_handle_with_source(signal: c_int) -> c_int {
    source();
    // SAFETY: the handler does only what handlers may do.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, null_mut())
    }
}

/// Copies the frames that the last handler read, as pairs of words.
///
/// # Safety
/// `pairs` has room for [`DEPTH`] of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_source_seen(pairs: *mut [u64; 2]) -> usize {
    // SAFETY: no handler runs now: the signal is sent by this thread to itself.
    let (frames, activations) = unsafe { &*LAST_FRAMES.0.get() };
    let len = LEN.load(Ordering::Relaxed);
    for (index, (frame, activation)) in frames[..len].iter().zip(activations).enumerate() {
        // SAFETY: the caller vouches for the room.
        unsafe { pairs.add(index).write([frame.to_bits(), activation.0]) };
    }
    len
}

/// Returns how many handlers read a complete stack.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_complete_samples() -> u64 {
    COMPLETE.load(Ordering::Relaxed)
}
