//! The threads that are traced: the state of each, found through one word, and a list of all.
//!
//! A thread that holds the GIL may read all of them, because threads only change theirs while they hold it. A thread
//! ends without the GIL; it sets a mark, and the next thread that cleans the list frees its state.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::{mem, ptr};

use stackweave_recording::Recorder;
use stackweave_store::thread_words::TRACE_BLOCK;

use crate::thread_stack::TracedStack;

/// The state of a thread that is traced.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TracedThread {
    pub(crate) stack: TracedStack,
    /// The number of calls that were recorded, including resumptions.
    pub(crate) calls: Cell<u64>,
    /// The number of calls of native functions that were recorded.
    pub(crate) native_calls: Cell<u64>,
    /// See [`Engine::known_path`](crate::engine::CallEngine::known_path).
    pub(crate) known_path: Cell<(u64, u64)>,
    /// The number of further lookups of the thread's name.
    pub(crate) name_attempts: Cell<u32>,
    /// The kernel's id of the thread.
    pub(crate) tid: Cell<u32>,
    /// Whether it has released the GIL in the middle of an event.
    pub(crate) is_waiting: AtomicBool,
    /// The recording into which it was last traced: its clock provides the time when the thread ends.
    recorder: Mutex<Option<Recorder>>,
    ended_at: AtomicU64,
    has_ended: AtomicBool,
}

/// The list of all threads. Guarded by the GIL.
struct ThreadList(UnsafeCell<Vec<*mut TracedThread>>);

// SAFETY: only threads that hold the GIL access it.
unsafe impl Sync for ThreadList {}

static THREADS: ThreadList = ThreadList(UnsafeCell::new(Vec::new()));
static THREAD_END: AtomicU32 = AtomicU32::new(0);

/// Returns the state of the calling thread, if it has one.
#[inline(always)]
pub(crate) fn current() -> Option<&'static TracedThread> {
    // SAFETY: null, or the state of this thread, which lives until the thread ends.
    unsafe { ptr::with_exposed_provenance::<TracedThread>(TRACE_BLOCK.get()).as_ref() }
}

/// Returns the state of the calling thread, which is created if needed.
///
/// # Safety
/// The GIL is held.
#[cold]
pub(crate) unsafe fn create() -> &'static TracedThread {
    if let Some(thread) = current() {
        return thread;
    }
    watch_threads();
    let thread = Box::into_raw(Box::new(TracedThread {
        stack: TracedStack::new(),
        calls: Cell::new(0),
        native_calls: Cell::new(0),
        known_path: Cell::new((0, 0)),
        name_attempts: Cell::new(0),
        // SAFETY: has no conditions.
        tid: Cell::new(unsafe { libc::gettid() }.unsigned_abs()),
        is_waiting: AtomicBool::new(false),
        recorder: Mutex::new(None),
        ended_at: AtomicU64::new(0),
        has_ended: AtomicBool::new(false),
    }));
    // SAFETY: the caller holds the GIL; no references into the list exist meanwhile.
    unsafe { (*THREADS.0.get()).push(thread) };
    TRACE_BLOCK.set(thread.expose_provenance());
    if let Some(key) = THREAD_END.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists; the value is this thread's state.
        unsafe { libc::pthread_setspecific(key, thread.cast()) };
    }
    // SAFETY: created above.
    unsafe { &*thread }
}

impl TracedThread {
    /// Sets the recording into which the thread is traced; `None`: it is not traced.
    pub(crate) fn set_recorder(&self, recorder: Option<&Recorder>) {
        let old = mem::replace(&mut *self.recorder.lock().unwrap_or_else(PoisonError::into_inner), recorder.cloned());
        drop(old);
    }

    /// Returns the time at which the thread ended, if it has.
    pub(crate) fn ended_at(&self) -> Option<u64> {
        self.has_ended.load(Ordering::Acquire).then(|| self.ended_at.load(Ordering::Relaxed))
    }
}

/// Visits all threads.
///
/// # Safety
/// The GIL is held. `visit` creates no threads, and does not release the GIL.
pub(crate) unsafe fn visit(mut visit: impl FnMut(&'static TracedThread)) {
    // SAFETY: passed on to the caller; states live until `remove_ended` frees them.
    for thread in unsafe { &*THREADS.0.get() } {
        // SAFETY: as above.
        visit(unsafe { &**thread });
    }
}

/// Frees the states of threads that have ended, after passing each to `last_visit`.
///
/// # Safety
/// As for [`visit`]. There are no references to the state of a thread that has ended.
pub(crate) unsafe fn remove_ended(mut last_visit: impl FnMut(&TracedThread)) {
    // SAFETY: passed on to the caller.
    let threads = unsafe { &mut *THREADS.0.get() };
    threads.retain(|thread| {
        // SAFETY: it is in the list, so it was not freed.
        let has_ended = unsafe { &**thread }.ended_at().is_some();
        if has_ended {
            // SAFETY: its thread will not use it again, and it is removed from the list.
            let thread = unsafe { Box::from_raw(*thread) };
            last_visit(&thread);
        }
        !has_ended
    });
}

/// Removes all threads but the calling one from the list in a forked child, where the others do not exist. Their states
/// are not freed: they may be in the middle of a change.
///
/// # Safety
/// As for [`visit`].
pub(crate) unsafe fn forget_other_threads() {
    let own: *mut TracedThread = ptr::with_exposed_provenance_mut(TRACE_BLOCK.get());
    // SAFETY: passed on to the caller.
    let threads = unsafe { &mut *THREADS.0.get() };
    threads.retain(|thread| *thread == own);
    if let Some(thread) = current() {
        // SAFETY: has no conditions.
        thread.tid.set(unsafe { libc::gettid() }.unsigned_abs());
    }
}

/// Registers once for notifications of the ends of threads.
fn watch_threads() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: the function stays loaded while the process uses it; `key` is writable.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_thread_end)) } == 0 {
            THREAD_END.store(key + 1, Ordering::Release);
        }
    });
}

/// Marks the thread as ended. Called without the GIL.
extern "C" fn at_thread_end(thread: *mut libc::c_void) {
    TRACE_BLOCK.set(0);
    // SAFETY: the state of this thread, which no other thread frees before the mark below is set.
    let thread = unsafe { &*thread.cast::<TracedThread>() };
    let recorder = thread.recorder.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let now = recorder.map_or(0, |recorder| recorder.ticks_now());
    thread.ended_at.store(now, Ordering::Relaxed);
    thread.has_ended.store(true, Ordering::Release);
}
