//! Whether memory is recorded, how, and by what: what every hook looks at first.
//!
//! The state is a page that the kernel empties in a forked child: a child records nothing before its own recording has begun
//! ([`Memory::begin_in_child`](crate::Memory::begin_in_child)), from its first instruction on and however it was forked. A child
//! that shares its parent's memory until it runs another program (`vfork`, `posix_spawn`) shares the page too: what it does is
//! done to the parent's memory, and is told so.
//!
//! Hot file: what is read here neither allocates nor locks, and is async-signal-safe.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stackweave_core::RawFrame;
use stackweave_recording::Recorder;

use crate::blocks;
use crate::hot_kinds::HotKinds;

/// What hooks do. Not an enum: it is compared with one of these in each call.
pub(crate) mod way {
    /// Nothing but what they stand for. Zero, so that a page that was emptied says it.
    pub(crate) const OFF: usize = 0;
    /// Every event is told.
    pub(crate) const ALL: usize = 1;
    /// Some allocations are, chosen by their bytes, and the frees of these.
    pub(crate) const SAMPLED: usize = 2;
    /// Paused: what is given back is told, so that what is live stays right.
    pub(crate) const FREES: usize = 3;
    /// The same of a recording that samples.
    pub(crate) const SAMPLED_FREES: usize = 4;
}

/// How long the end of a recording waits for threads that are in the middle of an event.
const PATIENCE: Duration = Duration::from_secs(1);

/// What an event needs, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Active {
    pub(crate) recorder: Recorder,
    pub(crate) kinds: HotKinds,
    pub(crate) native: bool,
    pub(crate) free_stacks: bool,
    pub(crate) mappings: bool,
    /// How many innermost frames of a stack are kept; 0: no stack is captured at all.
    pub(crate) limit: usize,
    /// How many bytes there are to a sample, where some are taken.
    pub(crate) every: u64,
    /// What an allocation that fails is recorded as.
    pub(crate) out_of_memory: Option<RawFrame>,
}

#[repr(C, align(4096))]
struct State {
    way: AtomicUsize,
    active: AtomicPtr<Active>,
}

static STATE: State = State { way: AtomicUsize::new(way::OFF), active: AtomicPtr::new(ptr::null_mut()) };
/// Whether there is a recording, be it that this process is a child whose own has not begun.
static EXPECTED: AtomicUsize = AtomicUsize::new(0);
/// Calls in a forked child before its recording has begun.
static BEFORE_BEGUN: AtomicU64 = AtomicU64::new(0);
/// Recordings that a thread was still in the middle of an event of, when [`PATIENCE`] was over. They are never freed.
static LEFT_OVER: AtomicU64 = AtomicU64::new(0);

/// What hooks do now.
#[inline(always)]
pub(crate) fn current_way() -> usize {
    STATE.way.load(Ordering::Relaxed)
}

/// What events need, while some are told. To be asked by a thread whose block says that it is in the middle of an event; for
/// use until it says no more.
#[inline(always)]
pub(crate) fn active() -> Option<&'static Active> {
    // SAFETY: null, or published and not freed before each block was seen without an event, or with another one.
    unsafe { STATE.active.load(Ordering::Acquire).as_ref() }
}

/// A hook was called while nothing is recorded.
#[cold]
#[inline(never)]
pub(crate) fn count_if_expected() {
    if EXPECTED.load(Ordering::Relaxed) != 0 && STATE.active.load(Ordering::Relaxed).is_null() {
        BEFORE_BEGUN.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls of hooks in this process, a forked child, that came before its recording had begun.
pub(crate) fn before_begun() -> u64 {
    BEFORE_BEGUN.load(Ordering::Relaxed)
}

/// How many recordings could not be freed.
pub(crate) fn left_over() -> u64 {
    LEFT_OVER.load(Ordering::Relaxed)
}

/// Whether this process records: false in a forked child that has not begun to.
pub(crate) fn is_begun() -> bool {
    !STATE.active.load(Ordering::Acquire).is_null()
}

/// Reserves the one place for a recording. False if it is taken.
pub(crate) fn reserve() -> bool {
    EXPECTED.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Gives the place back.
pub(crate) fn give_back() {
    EXPECTED.store(0, Ordering::Release);
}

/// Events are told from now on, in this way. The place is reserved, and nothing is told now.
pub(crate) fn publish(active: Active, way: usize) {
    crate::platform::empty_in_children(ptr::from_ref(&STATE).cast(), size_of::<State>());
    STATE.active.store(Box::into_raw(Box::new(active)), Ordering::Release);
    STATE.way.store(way, Ordering::SeqCst);
}

/// Events are told in another way.
pub(crate) fn set_way(way: usize) {
    if is_begun() {
        STATE.way.store(way, Ordering::SeqCst);
    }
}

/// Nothing is told any more. What events need is freed once no thread can be using it, or never.
pub(crate) fn retire() {
    STATE.way.store(way::OFF, Ordering::SeqCst);
    let active = STATE.active.swap(ptr::null_mut(), Ordering::SeqCst);
    if active.is_null() {
        return;
    }
    if blocks::wait_for_others(Instant::now() + PATIENCE) {
        // SAFETY: boxed by `publish`, out of reach, and out of use: whoever was in the middle of an event is no more.
        drop(unsafe { Box::from_raw(active) });
    } else {
        LEFT_OVER.fetch_add(1, Ordering::Relaxed);
    }
}
