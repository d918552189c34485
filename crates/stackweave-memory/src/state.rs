//! Whether and how memory is recorded, and by which recorder: every hook reads this first.
//!
//! The state is a page that the kernel clears in a forked child: from its first instruction on, a child records nothing
//! until its own recording begins ([`Memory::begin_in_child`](crate::MemoryRecorder::begin_in_child)), however it was forked. A
//! child that shares its parent's memory until it runs another program (`vfork`, `posix_spawn`) shares the page too: it
//! changes the parent's memory, and its events are recorded as the parent's.
//!
//! Hot file: reading the state neither allocates nor locks, and is async-signal-safe.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stackweave_core::RawFrame;
use stackweave_recording::Recorder;

use crate::hook_kinds::HookKinds;
use crate::hook_threads;

/// The mode of the hooks. Constants instead of an enum, because each call compares the mode with one of them.
pub(crate) mod hook_mode {
    /// Hooks only call their originals. Zero, because that is what a cleared page holds.
    pub(crate) const OFF: usize = 0;
    /// Hooks record every event.
    pub(crate) const ALL: usize = 1;
    /// Hooks record allocations that are chosen by their bytes, and the frees of these.
    pub(crate) const SAMPLED: usize = 2;
    /// Recording is paused: hooks record frees only, so that what is live stays right.
    pub(crate) const FREES: usize = 3;
    /// A sampled recording is paused.
    pub(crate) const SAMPLED_FREES: usize = 4;
}

/// The time that the end of a recording waits for threads that are in the middle of an event.
const PATIENCE: Duration = Duration::from_secs(1);

/// The data that an event needs, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct ActiveRecording {
    pub(crate) recorder: Recorder,
    pub(crate) kinds: HookKinds,
    pub(crate) native: bool,
    pub(crate) free_stacks: bool,
    pub(crate) mappings: bool,
    /// The number of a stack's innermost frames that are recorded; 0: stacks are not captured.
    pub(crate) limit: usize,
    /// The average number of bytes between two samples; 0: the recording is not sampled.
    pub(crate) every: u64,
    /// The label of a failed allocation.
    pub(crate) out_of_memory: Option<RawFrame>,
}

#[repr(C, align(4096))]
struct HookState {
    mode: AtomicUsize,
    active: AtomicPtr<ActiveRecording>,
}

static STATE: HookState = HookState { mode: AtomicUsize::new(hook_mode::OFF), active: AtomicPtr::new(ptr::null_mut()) };
/// Whether there is a recording, even if this process is a child whose own recording has not begun.
static EXPECTED: AtomicUsize = AtomicUsize::new(0);
/// Calls in a forked child before its recording has begun.
static BEFORE_BEGUN: AtomicU64 = AtomicU64::new(0);
/// Recordings with a thread that was still in the middle of an event after [`PATIENCE`]. They are never freed.
static LEFT_OVER: AtomicU64 = AtomicU64::new(0);

/// Returns what hooks do now.
#[inline(always)]
pub(crate) fn current_mode() -> usize {
    STATE.mode.load(Ordering::Relaxed)
}

/// Returns what an event needs, if events are recorded. The calling thread's [`HookThread`](hook_threads::HookThread)
/// must be marked as in an event; the result may be used until that mark is removed.
#[inline(always)]
pub(crate) fn active() -> Option<&'static ActiveRecording> {
    // SAFETY: null, or published, and not freed before every thread was seen outside an event or in a later one.
    unsafe { STATE.active.load(Ordering::Acquire).as_ref() }
}

/// Counts a call of a hook while nothing is recorded.
#[cold]
#[inline(never)]
pub(crate) fn count_if_expected() {
    if EXPECTED.load(Ordering::Relaxed) != 0 && STATE.active.load(Ordering::Relaxed).is_null() {
        BEFORE_BEGUN.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns how many calls of hooks in this process, a forked child, came before its recording began.
pub(crate) fn before_begun() -> u64 {
    BEFORE_BEGUN.load(Ordering::Relaxed)
}

/// Returns how many recordings could not be freed.
pub(crate) fn left_over() -> u64 {
    LEFT_OVER.load(Ordering::Relaxed)
}

/// Returns whether this process records: false in a forked child whose recording has not begun.
pub(crate) fn is_begun() -> bool {
    !STATE.active.load(Ordering::Acquire).is_null()
}

/// Reserves the process's single recorder slot. Returns false if another recorder has it.
pub(crate) fn reserve() -> bool {
    EXPECTED.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Releases the slot.
pub(crate) fn release() {
    EXPECTED.store(0, Ordering::Release);
}

/// Starts recording in this mode. The slot is reserved, and nothing is being recorded.
pub(crate) fn publish(active: ActiveRecording, mode: usize) {
    crate::platform::clear_in_children(ptr::from_ref(&STATE).cast(), size_of::<HookState>());
    STATE.active.store(Box::into_raw(Box::new(active)), Ordering::Release);
    STATE.mode.store(mode, Ordering::SeqCst);
}

/// Changes the mode of a recording.
pub(crate) fn set_mode(mode: usize) {
    if is_begun() {
        STATE.mode.store(mode, Ordering::SeqCst);
    }
}

/// Stops recording. What events use is freed once no thread can be using it, or never.
pub(crate) fn retire() {
    STATE.mode.store(hook_mode::OFF, Ordering::SeqCst);
    let active = STATE.active.swap(ptr::null_mut(), Ordering::SeqCst);
    if active.is_null() {
        return;
    }
    if hook_threads::wait_for_other_threads(Instant::now() + PATIENCE) {
        // SAFETY: boxed by `publish`, unreachable, and unused: every thread that was in an event has left it.
        drop(unsafe { Box::from_raw(active) });
    } else {
        LEFT_OVER.fetch_add(1, Ordering::Relaxed);
    }
}
