//! Walks from signal handlers.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stackweave_cpython::{Interpreter, PythonFrame, SourceStop};

use crate::walks::CtypesFrame;

/// The capacity for the deepest stack in a handler.
pub const DEPTH: usize = 4096;

/// The frames that the last handler read.
struct LastFrames(UnsafeCell<[PythonFrame; DEPTH]>);

// SAFETY: handlers and their readers run in one thread, one after the other.
unsafe impl Sync for LastFrames {}

static LAST_FRAMES: LastFrames = LastFrames(UnsafeCell::new(
    [PythonFrame { code: stackweave_cpython::CodePointer::new(0), activation: 0, instruction: 0, is_entry: false };
        DEPTH],
));
static LEN: AtomicUsize = AtomicUsize::new(0);
static SAMPLES: AtomicU64 = AtomicU64::new(0);
static BAD: AtomicU64 = AtomicU64::new(0);
static OUTERMOST: AtomicU64 = AtomicU64::new(0);
static TORN: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    let Ok(interpreter) = Interpreter::find() else { return };
    // SAFETY: the signal is blocked while its handler runs, and only one thread gets it.
    let frames = unsafe { &mut *LAST_FRAMES.0.get() };
    let walked = interpreter.walk_interrupted(frames);
    LEN.store(walked.len, Ordering::Relaxed);
    SAMPLES.fetch_add(1, Ordering::Relaxed);
    let outermost = walked.len.checked_sub(1).map_or(0, |last| frames[last].code.address());
    match walked.stop {
        SourceStop::EndOfStack if outermost == OUTERMOST.load(Ordering::Relaxed) => {}
        SourceStop::Interrupted => _ = TORN.fetch_add(1, Ordering::Relaxed),
        _ => _ = BAD.fetch_add(1, Ordering::Relaxed),
    }
}

/// Installs a raw handler that walks. Every walk must reach the frame that is the outermost now.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_handle(signal: c_int) -> c_int {
    let mut frames = vec![PythonFrame::default(); DEPTH];
    let walked = Interpreter::find().expect("it is supported").walk(&mut frames);
    OUTERMOST.store(frames[walked.len - 1].code.address(), Ordering::Relaxed);
    // SAFETY: the handler does only what handlers may do.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, null_mut())
    }
}

/// Copies the frames that the last handler read.
///
/// # Safety
/// `records` has room for [`DEPTH`] of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cpython_tests_seen(records: *mut CtypesFrame) -> usize {
    // SAFETY: no handler runs now: the signal is sent by this thread to itself.
    let frames = unsafe { &*LAST_FRAMES.0.get() };
    let len = LEN.load(Ordering::Relaxed);
    for (index, frame) in frames[..len].iter().enumerate() {
        // SAFETY: the caller vouches for the room.
        unsafe { records.add(index).write(CtypesFrame::from(frame)) };
    }
    len
}

static SENDER: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);
static IS_SENDING: AtomicBool = AtomicBool::new(false);

/// Interrupts this thread periodically, from another thread, until [`cpython_tests_stop_interrupting`].
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_interrupt(signal: c_int, microseconds: u64) {
    // SAFETY: `pthread_self` has no conditions.
    let target = unsafe { libc::pthread_self() };
    IS_SENDING.store(true, Ordering::Relaxed);
    let send = move || {
        while IS_SENDING.load(Ordering::Relaxed) {
            // SAFETY: the thread waits for this one in `cpython_tests_stop_interrupting`.
            unsafe { libc::pthread_kill(target, signal) };
            thread::sleep(Duration::from_micros(microseconds));
        }
    };
    *SENDER.lock().expect("no panic while it is held") = Some(thread::spawn(send));
}

/// Returns when no further signal comes.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_stop_interrupting() {
    IS_SENDING.store(false, Ordering::Relaxed);
    if let Some(sender) = SENDER.lock().expect("no panic while it is held").take() {
        sender.join().expect("it only sends signals");
    }
}

/// Returns how many signals were handled.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_samples() -> u64 {
    SAMPLES.load(Ordering::Relaxed)
}

/// Returns how many of them came when no stack could be read.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_torn_samples() -> u64 {
    TORN.load(Ordering::Relaxed)
}

/// Returns how many of their walks did not end at the outermost frame.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_cut_samples() -> u64 {
    BAD.load(Ordering::Relaxed)
}
