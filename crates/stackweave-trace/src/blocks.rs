//! The threads that are traced: a block of memory for each, found by one word, and a list of all.
//!
//! Whoever holds the GIL may look at all of them: the threads change theirs only with it. The end of a thread comes without
//! the GIL; it leaves a mark, and the next that looks at the list frees the block.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::{mem, ptr};

use stackweave_recording::Recorder;
use stackweave_store::thread_words::TRACE_BLOCK;

use crate::thread::Thread;

/// A thread that is traced.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Block {
    pub(crate) thread: Thread,
    /// How many calls were recorded, begun or gone on.
    pub(crate) calls: Cell<u64>,
    /// How many calls of native functions were recorded.
    pub(crate) native_calls: Cell<u64>,
    /// See [`Engine::way`](crate::engine::Engine::way).
    pub(crate) way: Cell<(u64, u64)>,
    /// How often its name is still looked for.
    pub(crate) name_attempts: Cell<u32>,
    /// Its number in the kernel.
    pub(crate) tid: Cell<u32>,
    /// Whether it has given the GIL away in the middle of an event.
    pub(crate) is_waiting: AtomicBool,
    /// The recording that it was traced into last: told the time when the thread ends.
    recorder: Mutex<Option<Recorder>>,
    ended_at: AtomicU64,
    has_ended: AtomicBool,
}

/// All blocks. Guarded by the GIL.
struct Blocks(UnsafeCell<Vec<*mut Block>>);

// SAFETY: only threads that hold the GIL look at it.
unsafe impl Sync for Blocks {}

static BLOCKS: Blocks = Blocks(UnsafeCell::new(Vec::new()));
static THREAD_END: AtomicU32 = AtomicU32::new(0);

/// The block of the calling thread, if it has one.
#[inline(always)]
pub(crate) fn of_this_thread() -> Option<&'static Block> {
    // SAFETY: null, or the block of this thread, which lives until the thread ends.
    unsafe { ptr::with_exposed_provenance::<Block>(TRACE_BLOCK.get()).as_ref() }
}

/// The same, made if there is none.
///
/// # Safety
/// The GIL is held.
#[cold]
pub(crate) unsafe fn make_for_this_thread() -> &'static Block {
    if let Some(block) = of_this_thread() {
        return block;
    }
    watch_threads();
    let block = Box::into_raw(Box::new(Block {
        thread: Thread::new(),
        calls: Cell::new(0),
        native_calls: Cell::new(0),
        way: Cell::new((0, 0)),
        name_attempts: Cell::new(0),
        // SAFETY: has no conditions.
        tid: Cell::new(unsafe { libc::gettid() }.unsigned_abs()),
        is_waiting: AtomicBool::new(false),
        recorder: Mutex::new(None),
        ended_at: AtomicU64::new(0),
        has_ended: AtomicBool::new(false),
    }));
    // SAFETY: the caller holds the GIL; nobody has a reference into the list meanwhile.
    unsafe { (*BLOCKS.0.get()).push(block) };
    TRACE_BLOCK.set(block.expose_provenance());
    if let Some(key) = THREAD_END.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists; the value is this thread's block.
        unsafe { libc::pthread_setspecific(key, block.cast()) };
    }
    // SAFETY: made just now.
    unsafe { &*block }
}

impl Block {
    /// From now on the thread is traced into this recording, or into none.
    pub(crate) fn set_recorder(&self, recorder: Option<&Recorder>) {
        let old = mem::replace(&mut *self.recorder.lock().unwrap_or_else(PoisonError::into_inner), recorder.cloned());
        drop(old);
    }

    /// When the thread ended, if it has.
    pub(crate) fn ended_at(&self) -> Option<u64> {
        self.has_ended.load(Ordering::Acquire).then(|| self.ended_at.load(Ordering::Relaxed))
    }
}

/// Visits all blocks.
///
/// # Safety
/// The GIL is held. `visit` makes no blocks, and does not give the GIL away.
pub(crate) unsafe fn visit(mut visit: impl FnMut(&'static Block)) {
    // SAFETY: the caller's promise; blocks live until they are swept.
    for block in unsafe { &*BLOCKS.0.get() } {
        // SAFETY: as above.
        visit(unsafe { &**block });
    }
}

/// Frees the blocks of threads that have ended, after a last look.
///
/// # Safety
/// As for [`visit`]. Nobody has a reference to the block of a thread that has ended.
pub(crate) unsafe fn sweep(mut last_look: impl FnMut(&Block)) {
    // SAFETY: the caller's promise.
    let blocks = unsafe { &mut *BLOCKS.0.get() };
    blocks.retain(|block| {
        // SAFETY: in the list, so not freed.
        let is_over = unsafe { &**block }.ended_at().is_some();
        if is_over {
            // SAFETY: its thread will not use it again, and it leaves the list.
            let block = unsafe { Box::from_raw(*block) };
            last_look(&block);
        }
        !is_over
    });
}

/// In a forked child: only the calling thread is there. The blocks of the others are left alone: what they hold may be in
/// the middle of a change.
///
/// # Safety
/// As for [`visit`].
pub(crate) unsafe fn forget_other_threads() {
    let own: *mut Block = ptr::with_exposed_provenance_mut(TRACE_BLOCK.get());
    // SAFETY: the caller's promise.
    let blocks = unsafe { &mut *BLOCKS.0.get() };
    blocks.retain(|block| *block == own);
    if let Some(block) = of_this_thread() {
        // SAFETY: has no conditions.
        block.tid.set(unsafe { libc::gettid() }.unsigned_abs());
    }
}

/// Asks the system once to be told of the ends of threads.
fn watch_threads() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: the function stays loaded as long as the process uses it; the key has a place.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_thread_end)) } == 0 {
            THREAD_END.store(key + 1, Ordering::Release);
        }
    });
}

/// Without the GIL.
extern "C" fn at_thread_end(block: *mut libc::c_void) {
    TRACE_BLOCK.set(0);
    // SAFETY: the block of this thread, which nobody frees before the mark below is set.
    let block = unsafe { &*block.cast::<Block>() };
    let recorder = block.recorder.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let now = recorder.map_or(0, |recorder| recorder.ticks_now());
    block.ended_at.store(now, Ordering::Relaxed);
    block.has_ended.store(true, Ordering::Release);
}
