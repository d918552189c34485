//! Signals threads: the handler of each captures its stack, and stores the id.
//!
//! No allocation, no lock, async-signal-safe. A late handler, whose dump has given up, changes nothing: its reply
//! is no longer expected.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use stackweave_core::{SourceStop, StackId, StopReason};

use crate::capture::capture_from_context;
use crate::dump::DumpError;
use crate::platform::dump_signal;
use crate::platform::raw_files::last_error;
use crate::platform::tasks::{self, TaskStatus};
use crate::request::{Capture, CaptureRequest, CaptureStart};

/// The maximum number of threads that are signalled.
const MAX_THREADS: usize = 4096;

/// A signalled thread. The reply is one word: a late handler cannot leave half of one.
struct ThreadSlot {
    task: AtomicI32,
    word: AtomicU64,
}

static SLOTS: [ThreadSlot; MAX_THREADS] =
    [const { ThreadSlot { task: AtomicI32::new(0), word: AtomicU64::new(0) } }; MAX_THREADS];
/// Number of slots in use.
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Incremented by each reply; the dump waits for it.
static REPLIES: AtomicU32 = AtomicU32::new(0);
/// The number of the current dump.
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The thread that dumps, and the request for its own stack.
static OWN_TASK: AtomicI32 = AtomicI32::new(0);
static OWN_REQUEST: AtomicPtr<CaptureRequest> = AtomicPtr::new(ptr::null_mut());

const EVERYTHING: CaptureRequest = CaptureRequest {
    python: true,
    native: true,
    script: true,
    skip: 0,
    limit: usize::MAX,
    start: CaptureStart::Caller,
};

const WAITING: u64 = 1 << 32;
const REPLIED: u64 = 2 << 32;
const GIVEN_UP: u64 = 3 << 32;
const KIND: u64 = 0xff << 32;
const NATIVE_SHIFT: u32 = 40;
const SOURCE_SHIFT: u32 = 48;

fn packed(capture: Capture) -> u64 {
    let stack = capture.stack.map_or(0, |stack| u64::from(stack.get()));
    REPLIED | stack | (capture.native_stop as u64) << NATIVE_SHIFT | (capture.source_stop as u64) << SOURCE_SHIFT
}

fn unpacked(word: u64) -> Option<Capture> {
    (word & KIND == REPLIED).then(|| Capture {
        stack: StackId::new(word as u32),
        native_stop: StopReason::ALL[usize::from((word >> NATIVE_SHIFT) as u8) % StopReason::ALL.len()],
        source_stop: SourceStop::ALL[usize::from((word >> SOURCE_SHIFT) as u8) % SourceStop::ALL.len()],
        is_cut: false,
    })
}

/// Captures the interrupted stack, if this thread is part of the current dump. This is the work of the signal handler.
///
/// # Safety
/// `context` is the context of the handler that is running.
pub(crate) unsafe fn reply(context: *const c_void) {
    let me = tasks::own();
    let Some(slot) = slots().iter().find(|slot| slot.task.load(Ordering::Acquire) == me) else { return };
    let signalled = slot.word.load(Ordering::Acquire);
    if signalled & KIND != WAITING {
        return;
    }
    let own =
        if OWN_TASK.load(Ordering::Acquire) == me { OWN_REQUEST.load(Ordering::Acquire) } else { ptr::null_mut() };
    // SAFETY: this thread is inside its dump, which keeps the request alive; the caller promises a valid context.
    let capture = unsafe { capture_from_context(context, own.as_ref().unwrap_or(&EVERYTHING)) };
    if slot.word.compare_exchange(signalled, packed(capture), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        REPLIES.fetch_add(1, Ordering::AcqRel);
        futex(libc::FUTEX_WAKE, 1, None);
    }
}

fn futex(operation: c_int, value: u32, timeout: Option<&libc::timespec>) {
    let timeout = timeout.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word is static, and the timeout outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, REPLIES.as_ptr(), operation | libc::FUTEX_PRIVATE_FLAG, value, timeout) };
}

/// The threads that one dump signals.
#[derive(Debug)]
pub(crate) struct SignalledThreads<'a> {
    signal: c_int,
    process: c_int,
    waiting: u64,
    omitted: Cell<usize>,
    /// The stack of the calling thread, if it was captured from a context.
    own: Option<Capture>,
    _request: Option<&'a CaptureRequest>,
}

/// Begins a dump by the thread that holds the lock. `own` is the request for its own stack, which is captured
/// immediately if there is a context.
pub(crate) fn begin(
    own: Option<&CaptureRequest>,
    context: Option<*const c_void>,
) -> Result<SignalledThreads<'_>, DumpError> {
    let signal = dump_signal::signal()?;
    LENGTH.store(0, Ordering::Release);
    OWN_TASK.store(tasks::own(), Ordering::Release);
    OWN_REQUEST.store(own.map_or(ptr::null_mut(), |request| ptr::from_ref(request).cast_mut()), Ordering::Release);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller of the dump promises a valid context.
    let captured = |(context, request): (_, &CaptureRequest)| unsafe { capture_from_context(context, request) };
    Ok(SignalledThreads {
        signal,
        // SAFETY: `getpid` has no preconditions.
        process: unsafe { libc::getpid() },
        waiting: WAITING | u64::from(number),
        omitted: Cell::new(0),
        own: context.zip(own).map(captured),
        _request: own,
    })
}

impl SignalledThreads<'_> {
    pub(crate) fn signal(&self) -> c_int {
        self.signal
    }

    /// Returns the number of threads without a slot.
    pub(crate) fn omitted(&self) -> usize {
        self.omitted.get()
    }

    /// Signals a thread, if it still exists. A thread with a pending signal, which blocks it, gets no second one.
    pub(crate) fn signal_thread(&self, task: c_int) {
        // While threads start and end, the kernel may list one twice.
        if slots().iter().any(|slot| slot.task.load(Ordering::Relaxed) == task) {
            return;
        }
        let index = LENGTH.load(Ordering::Relaxed);
        let Some(slot) = SLOTS.get(index) else {
            self.omitted.set(self.omitted.get() + 1);
            return;
        };
        let known = self.own.filter(|_| task == tasks::own());
        slot.word.store(known.map_or(self.waiting, packed), Ordering::Release);
        slot.task.store(task, Ordering::Release);
        LENGTH.store(index + 1, Ordering::Release);
        let is_pending = || TaskStatus::of(task, self.signal).is_some_and(|status| status.is_pending);
        if known.is_none() && !is_pending() && !tasks::send(self.process, task, self.signal) {
            mark_not_signalled(index, slot);
        }
    }

    /// Returns whether all have replied, or were given up.
    pub(crate) fn wait_until(&self, end: Instant) -> bool {
        loop {
            let seen = REPLIES.load(Ordering::Acquire);
            if !slots().iter().any(|slot| slot.word.load(Ordering::Acquire) == self.waiting) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let tv_sec = libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX);
            let left = libc::timespec { tv_sec, tv_nsec: left.subsec_nanos().into() };
            futex(libc::FUTEX_WAIT, seen, Some(&left));
        }
    }

    /// Stops waiting for those threads.
    pub(crate) fn give_up(&self, is_hopeless: impl Fn(c_int) -> bool) {
        for slot in slots() {
            if slot.word.load(Ordering::Acquire) == self.waiting && is_hopeless(slot.task.load(Ordering::Relaxed)) {
                let _ = slot.word.compare_exchange(self.waiting, GIVEN_UP, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Returns each thread and its reply, in the kernel's order.
    #[expect(clippy::unused_self, reason = "the slots belong to this dump as long as it lives")]
    pub(crate) fn replies(&self) -> impl Iterator<Item = (c_int, Option<Capture>)> {
        slots().iter().map(|slot| (slot.task.load(Ordering::Relaxed), unpacked(slot.word.load(Ordering::Acquire))))
    }
}

/// Handles a thread that could not be signalled: it has ended, or too many signals are pending.
fn mark_not_signalled(index: usize, slot: &ThreadSlot) {
    if last_error() == libc::ESRCH {
        LENGTH.store(index, Ordering::Release);
    } else {
        slot.word.store(GIVEN_UP, Ordering::Release);
    }
}

/// Returns the slots in use.
fn slots() -> &'static [ThreadSlot] {
    &SLOTS[..LENGTH.load(Ordering::Acquire).min(MAX_THREADS)]
}

impl Drop for SignalledThreads<'_> {
    fn drop(&mut self) {
        self.give_up(|_| true);
        OWN_REQUEST.store(ptr::null_mut(), Ordering::Release);
        OWN_TASK.store(0, Ordering::Release);
    }
}
