//! Walks to code ids from signal handlers.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use stackweave_core::{FrameSource, RawFrame, SourceStop, SourceWalk, StackPointer};

use crate::signals::DEPTH;
use crate::sources::source;

/// What the last handler saw.
struct Seen(UnsafeCell<([RawFrame; DEPTH], [StackPointer; DEPTH])>);

// SAFETY: handlers and their readers run in one thread, one after the other.
unsafe impl Sync for Seen {}

static SEEN: Seen = Seen(UnsafeCell::new(([RawFrame::script(0, 0); DEPTH], [StackPointer(0); DEPTH])));
static LEN: AtomicUsize = AtomicUsize::new(0);
static WHOLE: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the signal is blocked while its handler runs, and only one thread gets it.
    let (frames, activations) = unsafe { &mut *SEEN.0.get() };
    // The handler may have interrupted a walk, which has this thread's memory.
    let walked = source().walk(SourceWalk { frames, activations, memory: &mut [], source: 0, in_signal_handler: true });
    LEN.store(walked.len, Ordering::Relaxed);
    if walked.stop == SourceStop::EndOfStack {
        WHOLE.fetch_add(1, Ordering::Relaxed);
    }
}

/// Lets a raw handler walk whenever the signal comes.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_handle_with_source(signal: c_int) -> c_int {
    source();
    // SAFETY: the handler does only what is allowed in one.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, null_mut())
    }
}

/// Copies what the last handler saw, as pairs of words.
///
/// # Safety
/// `pairs` has room for [`DEPTH`] of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_source_seen(pairs: *mut [u64; 2]) -> usize {
    // SAFETY: no handler runs now: the signal is sent by this thread to itself.
    let (frames, activations) = unsafe { &*SEEN.0.get() };
    let len = LEN.load(Ordering::Relaxed);
    for (index, (frame, activation)) in frames[..len].iter().zip(activations).enumerate() {
        // SAFETY: the caller says that there is room.
        unsafe { pairs.add(index).write([frame.to_bits(), activation.0]) };
    }
    len
}

/// How many handlers saw a whole stack.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_whole_samples() -> u64 {
    WHOLE.load(Ordering::Relaxed)
}
