//! Recordings across forks and at the exit of a process.
//!
//! In a child, another thread of the parent may have held any lock at the fork, and no writer runs. So a child never touches
//! its parent's session: it increments its generation, and creates its own session at its first event.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Once, Weak};
use std::{io, ptr};

use super::fork_mark;
use super::gaps;
use super::lanes;
use super::shared_recorder::SharedRecorder;

static GENERATION: AtomicU64 = AtomicU64::new(1);
static THREAD_END: AtomicU32 = AtomicU32::new(0);
static STOPPED_AT_EXIT: RecorderSlots = RecorderSlots(AtomicPtr::new(ptr::null_mut()));

/// Returns the number of forks between the process that first recorded and this one, plus 1.
pub(super) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Notes that this process is a child. Async-signal-safe.
pub(super) fn begin_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    gaps::add();
    fork_mark::set();
    lanes::forget_all();
}

extern "C" fn in_child() {
    begin_generation();
}

extern "C" fn at_thread_end(_: *mut libc::c_void) {
    lanes::end_of_thread();
}

extern "C" fn at_exit() {
    STOPPED_AT_EXIT.for_each(SharedRecorder::stop_at_exit);
}

/// Registers handlers for forks, for the ends of threads, and for the end of the process, once.
pub(super) fn watch() -> io::Result<()> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        fork_mark::make();
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: the functions stay loaded as long as the process uses them; the pointer to the key is valid.
        unsafe {
            if libc::pthread_key_create(&raw mut key, Some(at_thread_end)) == 0 {
                THREAD_END.store(key + 1, Ordering::Release);
            }
            libc::pthread_atfork(None, None, Some(in_child));
            libc::atexit(at_exit);
        }
    });
    if THREAD_END.load(Ordering::Acquire) == 0 {
        return Err(io::Error::other("the system has no key for thread-specific data left"));
    }
    Ok(())
}

/// Makes [`lanes::end_of_thread`] run at the end of the calling thread, after the destructors of its thread-locals.
pub(super) fn watch_this_thread() {
    if let Some(key) = THREAD_END.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists; the value is only compared with null.
        unsafe { libc::pthread_setspecific(key, ptr::without_provenance(1)) };
    }
}

/// Registers a recorder to be stopped when the process ends, if it still exists.
pub(super) fn stop_at_exit(recorder: Weak<SharedRecorder>) {
    STOPPED_AT_EXIT.put(recorder.into_raw().cast_mut());
}

/// Removes a recorder that is being dropped, which stops it.
pub(super) fn forget(recorder: &SharedRecorder) {
    let recorder = ptr::from_ref(recorder).cast_mut();
    if STOPPED_AT_EXIT.remove(recorder) {
        // SAFETY: from `Weak::into_raw`, and removed from the list.
        drop(unsafe { Weak::from_raw(recorder) });
    }
}

/// A lock-free list of the recorders to stop at exit. Its slots are reused.
struct RecorderSlots(AtomicPtr<RecorderSlot>);

struct RecorderSlot {
    recorder: AtomicPtr<SharedRecorder>,
    next: *mut RecorderSlot,
}

impl RecorderSlots {
    fn put(&self, recorder: *mut SharedRecorder) {
        let empty = ptr::null_mut();
        let exchange =
            |slot: &RecorderSlot| slot.recorder.compare_exchange(empty, recorder, Ordering::AcqRel, Ordering::Relaxed);
        if !self.slots().any(|slot| exchange(slot).is_ok()) {
            self.add(recorder);
        }
    }

    /// Removes a recorder. Returns whether it was in the list.
    fn remove(&self, recorder: *mut SharedRecorder) -> bool {
        let empty = ptr::null_mut();
        let exchange =
            |slot: &RecorderSlot| slot.recorder.compare_exchange(recorder, empty, Ordering::AcqRel, Ordering::Relaxed);
        self.slots().any(|slot| exchange(slot).is_ok())
    }

    fn add(&self, recorder: *mut SharedRecorder) {
        let slot = Box::into_raw(Box::new(RecorderSlot { recorder: AtomicPtr::new(recorder), next: ptr::null_mut() }));
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: no other code has it before the exchange.
            unsafe { (*slot).next = first };
            match self.0.compare_exchange_weak(first, slot, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    fn slots(&self) -> impl Iterator<Item = &'static RecorderSlot> {
        // SAFETY: slots are leaked, and only their recorders change.
        let mut next = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        std::iter::from_fn(move || {
            let slot = next?;
            // SAFETY: as above.
            next = unsafe { slot.next.as_ref() };
            Some(slot)
        })
    }

    fn for_each(&self, stop: impl Fn(&SharedRecorder)) {
        for slot in self.slots() {
            let recorder = slot.recorder.swap(ptr::null_mut(), Ordering::AcqRel);
            if !recorder.is_null() {
                // SAFETY: from `Weak::into_raw`, and removed by the swap.
                if let Some(recorder) = unsafe { Weak::from_raw(recorder) }.upgrade() {
                    stop(&recorder);
                }
            }
        }
    }
}
