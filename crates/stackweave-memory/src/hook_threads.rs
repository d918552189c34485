//! The state of the hooks for each thread: whether it is in the middle of an event, and how far it is from its next
//! sample.
//!
//! A thread finds its [`HookThread`] through one word of static TLS. Other threads read it to learn when a recording is
//! no longer used. The entry of a thread that has ended is reused once the kernel no longer knows the thread, because a
//! thread may free memory until its very end.
//!
//! Hot file: the code that runs for each event neither allocates nor locks nor calls the system, and is
//! async-signal-safe. A thread's first event may map a page, and registers for a notification of the thread's end.

use std::cell::Cell;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use stackweave_store::thread_words::MEMORY_BLOCK;

use crate::platform;

/// A mark in place of an event's stack address: the thread has a [`SuppressGuard`](crate::SuppressGuard).
pub(crate) const SUPPRESSED: usize = 1;
/// A mark: the thread never records.
pub(crate) const NEVER_RECORDED: usize = 2;
/// Greater values are addresses on a stack.
const LAST_MARK: usize = NEVER_RECORDED;

/// A countdown that has not begun.
pub(crate) const NOT_BEGUN: u64 = 0;

const VACANT: u32 = 0;
const USED: u32 = 1;
/// The thread is ending, but may still run.
const ENDING: u32 = 2;

/// The state of the hooks for one thread. Events touch only the first cache line.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct HookThread {
    /// 0; or the stack address of the event that the thread is in; or a mark.
    pub(crate) busy: AtomicUsize,
    errno: AtomicPtr<i32>,
    /// The number of bytes that are left until the next sample. Only the owner counts down; the start of a recording
    /// resets all.
    pub(crate) bytes_to_sample: AtomicU64,
    pub(crate) random: Cell<u64>,
    /// The bits of the thread's tag; 0: none.
    pub(crate) tag: AtomicU64,
    /// The block that a host last freed on this thread, and the stack of that free.
    pub(crate) last_free: Cell<(u64, u64)>,
    tid: AtomicU32,
    usage: AtomicU32,
    next: AtomicPtr<HookThread>,
}

const _: () = assert!(offset_of!(HookThread, next) == 64, "events touch one cache line");

// SAFETY: only the owner uses the cells; the rest are atomics.
unsafe impl Sync for HookThread {}

const PAGE: usize = 4096;
pub(crate) const THREADS_PER_PAGE: usize = PAGE / size_of::<HookThread>();

static FIRST: AtomicPtr<HookThread> = AtomicPtr::new(ptr::null_mut());
/// The pthread key whose destructor runs at the end of a thread, plus one; 0: none.
static THREAD_END: AtomicU32 = AtomicU32::new(0);

impl HookThread {
    /// Returns the entry of the calling thread, if it has one.
    #[inline(always)]
    pub(crate) fn current() -> Option<&'static Self> {
        // SAFETY: null, or the entry of this thread: entries are never unmapped, and no other thread owns this one.
        unsafe { ptr::with_exposed_provenance::<Self>(MEMORY_BLOCK.get()).as_ref() }
    }

    /// Returns the entry of the calling thread, which is created if needed. `None` if there is no memory for one.
    #[inline(always)]
    pub(crate) fn current_or_attach() -> Option<&'static Self> {
        Self::current().or_else(attach)
    }

    /// Returns the kernel's id of the thread.
    pub(crate) fn number(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// Returns the thread's `errno`.
    #[inline(always)]
    pub(crate) fn errno(&self) -> i32 {
        // SAFETY: the calling thread's own, set by `attach`.
        unsafe { *self.errno.load(Ordering::Relaxed) }
    }

    #[inline(always)]
    pub(crate) fn set_errno(&self, value: i32) {
        // SAFETY: as in `errno`.
        unsafe { *self.errno.load(Ordering::Relaxed) = value };
    }

    /// Marks the thread as in an event.
    #[inline(always)]
    pub(crate) fn begin_event(&self, stack_address: usize) {
        self.busy.store(stack_address, Ordering::Relaxed);
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Removes the mark. The thread no longer uses what it used for the event.
    #[inline(always)]
    pub(crate) fn end_event(&self) {
        self.busy.store(0, Ordering::Release);
    }

    /// Returns whether the event that the thread is marked with was abandoned because a signal handler jumped out of
    /// it. A call from inside an event has a lower stack address.
    #[cold]
    #[inline(never)]
    pub(crate) fn has_left_event(&self, here: usize) -> bool {
        let stack_address = self.busy.load(Ordering::Relaxed);
        stack_address > LAST_MARK && stack_address <= here && !platform::is_on_signal_stack()
    }

    /// Returns whether another thread may be in the middle of an event.
    fn is_in_event(&self) -> bool {
        self.busy.load(Ordering::Acquire) > LAST_MARK
    }

    fn claim(&self, from: u32, tid: u32) -> bool {
        let claimed = self.usage.compare_exchange(from, USED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if claimed {
            self.tid.store(tid, Ordering::Relaxed);
            self.bytes_to_sample.store(NOT_BEGUN, Ordering::Relaxed);
            self.tag.store(0, Ordering::Relaxed);
            self.last_free.set((0, 0));
        }
        claimed
    }
}

/// Returns all entries.
fn all() -> impl Iterator<Item = &'static HookThread> {
    // SAFETY: the list only grows, and entries are never unmapped.
    let follow = |entry: *mut HookThread| unsafe { entry.as_ref() };
    std::iter::successors(follow(FIRST.load(Ordering::Acquire)), move |entry| {
        follow(entry.next.load(Ordering::Acquire))
    })
}

/// Attaches an entry to the calling thread: that of a thread that has ended, or a new one.
#[cold]
#[inline(never)]
fn attach() -> Option<&'static HookThread> {
    let errno = platform::errno_pointer();
    // SAFETY: the calling thread's own.
    let before = unsafe { *errno };
    let tid = platform::kernel_thread_id();
    let entry = all().find(|entry| reuse(entry, tid)).or_else(|| map_page(tid))?;
    entry.errno.store(errno, Ordering::Relaxed);
    // The memory that the system allocates to register for the thread's end is not the program's.
    entry.busy.store(SUPPRESSED, Ordering::Relaxed);
    MEMORY_BLOCK.set(ptr::from_ref(entry).expose_provenance());
    if let Some(key) = THREAD_END.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists; the value is this thread's entry.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(entry).cast()) };
    }
    entry.busy.store(0, Ordering::Relaxed);
    entry.set_errno(before);
    Some(entry)
}

/// Claims an unused entry. The entry of a thread that is ending stays its own until the kernel no longer knows that
/// thread, or uses its id for another: the calling thread.
fn reuse(entry: &HookThread, tid: u32) -> bool {
    match entry.usage.load(Ordering::Acquire) {
        VACANT => entry.claim(VACANT, tid),
        ENDING => {
            let owner = entry.tid.load(Ordering::Relaxed);
            (owner == tid || platform::is_gone(owner)) && entry.claim(ENDING, tid)
        }
        _ => false,
    }
}

/// Maps a page of new entries. The first is the calling thread's.
fn map_page(tid: u32) -> Option<&'static HookThread> {
    let page = platform::map_zeros(PAGE)?.cast::<HookThread>().as_ptr();
    // SAFETY: a page of zeros, which are vacant entries, and is never unmapped.
    let entries: &'static [HookThread] = unsafe { std::slice::from_raw_parts(page, THREADS_PER_PAGE) };
    let (own, rest) = entries.split_first()?;
    own.claim(VACANT, tid);
    for (entry, next) in entries.iter().zip(rest) {
        entry.next.store(ptr::from_ref(next).cast_mut(), Ordering::Relaxed);
    }
    let last = entries.last()?;
    let mut first = FIRST.load(Ordering::Relaxed);
    loop {
        last.next.store(first, Ordering::Relaxed);
        match FIRST.compare_exchange_weak(first, page, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(own),
            Err(now) => first = now,
        }
    }
}

/// Registers, once, for a notification of the end of each thread. Without it, entries are never reused.
pub(crate) fn watch_threads() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: the function stays loaded while the process uses it; `key` is writable.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_thread_end)) } == 0 {
            THREAD_END.store(key + 1, Ordering::Release);
        }
    });
}

extern "C" fn at_thread_end(entry: *mut libc::c_void) {
    // SAFETY: the entry of this thread.
    let entry = unsafe { &*entry.cast::<HookThread>() };
    entry.usage.store(ENDING, Ordering::Release);
}

/// Resets all entries when a recording begins: no thread has a tag, or a countdown of an earlier recording.
pub(crate) fn reset() {
    for entry in all() {
        entry.bytes_to_sample.store(NOT_BEGUN, Ordering::Relaxed);
        entry.tag.store(0, Ordering::Relaxed);
    }
}

/// Forgets all other threads in a forked child, where they do not exist.
pub(crate) fn forget_other_threads() {
    let own = HookThread::current();
    for entry in all() {
        if own.is_some_and(|own| ptr::eq(own, entry)) {
            entry.tid.store(platform::kernel_thread_id(), Ordering::Relaxed);
        } else {
            entry.busy.store(0, Ordering::Relaxed);
            entry.usage.store(VACANT, Ordering::Release);
        }
    }
}

/// Waits until no other thread is in an event that began before this call. Later events see everything that was stored
/// before it, so the caller must have stopped recording. Returns false if that takes too long.
pub(crate) fn wait_for_other_threads(until: Instant) -> bool {
    platform::order_all_threads();
    let own = HookThread::current();
    all().filter(|entry| !own.is_some_and(|own| ptr::eq(own, *entry))).all(|entry| {
        // A thread that the kernel has ended in the middle of an event is no longer in it.
        while entry.is_in_event() && !platform::is_gone(entry.tid.load(Ordering::Relaxed)) {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    })
}

#[cfg(test)]
pub(crate) fn count() -> usize {
    all().count()
}
