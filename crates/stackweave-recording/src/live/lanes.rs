//! The lanes of the calling thread: one for each recording that it has recorded to.
//!
//! Two thread-local words refer to them: the lane that was used last, and the list of all lanes, with a bit that marks that the
//! thread is changing it. A signal handler that finds the bit does not touch the list.
//!
//! Async-signal-safe; the memory of a new lane comes directly from the kernel.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use super::fork;
use super::lane::Lane;
use super::session::RecordingSession;
use super::thread_words;

const CHANGING: usize = 1;
/// Replaces the list of a thread that never records.
const NEVER: usize = 2;

/// Exclusive access to the list of the calling thread.
pub(super) struct LaneListGuard(usize);

/// The reason why the list is not accessible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneListError {
    /// A signal handler has interrupted the thread while that was changing its list.
    Interrupted,
    /// The thread never records.
    Never,
}

impl LaneListGuard {
    pub(super) fn take() -> Result<Self, LaneListError> {
        let list = thread_words::LIST.get();
        if list == NEVER {
            return Err(LaneListError::Never);
        }
        if list & CHANGING != 0 {
            return Err(LaneListError::Interrupted);
        }
        thread_words::LIST.set(list | CHANGING);
        compiler_fence(Ordering::SeqCst);
        Ok(Self(list))
    }

    /// Returns the lane of this session, which is created if there is none. `None` without memory.
    pub(super) fn lane(&mut self, session: &Arc<RecordingSession>) -> Option<&'static Lane> {
        let lane = self.find(session).or_else(|| self.add(session))?;
        thread_words::LANE.set(ptr::from_ref(lane).expose_provenance());
        Some(lane)
    }

    fn find(&self, session: &Arc<RecordingSession>) -> Option<&'static Lane> {
        let wanted = Arc::as_ptr(session).addr();
        let mut next: *mut Lane = ptr::with_exposed_provenance_mut(self.0);
        loop {
            // SAFETY: the lanes in a thread's list live until the thread removes them.
            let lane = unsafe { next.as_ref() }?;
            if lane.is_of(wanted) {
                return Some(lane);
            }
            next = lane.next_of_thread.get();
        }
    }

    fn add(&mut self, session: &Arc<RecordingSession>) -> Option<&'static Lane> {
        self.drop_closed();
        let new = Lane::map(session);
        // SAFETY: null, or mapped just now.
        let lane = unsafe { new.as_ref() }?;
        lane.next_of_thread.set(ptr::with_exposed_provenance_mut(self.0));
        self.0 = new.expose_provenance();
        session.introduce(new);
        fork::watch_this_thread();
        Some(lane)
    }

    /// Removes the lanes of stopped recordings, except one that was interrupted during an event.
    fn drop_closed(&mut self) {
        thread_words::LANE.set(0);
        let mut next: *mut Lane = ptr::with_exposed_provenance_mut(self.0);
        let mut kept: *mut Lane = ptr::null_mut();
        // SAFETY: as in `find`; a removed lane is not accessed afterwards.
        while let Some(lane) = unsafe { next.as_ref() } {
            let this = next;
            next = lane.next_of_thread.get();
            if lane.session().is_closed() && !lane.is_busy() {
                end_once(this);
            } else {
                lane.next_of_thread.set(kept);
                kept = this;
            }
        }
        self.0 = kept.expose_provenance();
    }
}

impl Drop for LaneListGuard {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        thread_words::LIST.set(self.0);
    }
}

/// Returns the lane that the calling thread used last.
pub(super) fn last() -> *const Lane {
    ptr::with_exposed_provenance(thread_words::LANE.get())
}

/// Marks that the calling thread never records.
pub(super) fn never() {
    thread_words::LANE.set(0);
    thread_words::LIST.set(NEVER);
}

/// Forgets the lanes of the calling thread, which belong to another process.
pub(super) fn forget_all() {
    thread_words::LANE.set(0);
    thread_words::LIST.set(0);
}

/// Hands the events of the calling thread, whose destructors have run, to the writers. It may record more, on the same lanes.
pub(super) fn end_of_thread() {
    let list = thread_words::LIST.get();
    if list == NEVER {
        return;
    }
    thread_words::LANE.set(0);
    let mut next: *mut Lane = ptr::with_exposed_provenance_mut(list & !CHANGING);
    let mut kept: *mut Lane = ptr::null_mut();
    // SAFETY: as in `LaneListGuard::find`.
    while let Some(lane) = unsafe { next.as_ref() } {
        let this = next;
        next = lane.next_of_thread.get();
        if lane.leave_to_writer() {
            end_once(this);
        } else {
            lane.next_of_thread.set(kept);
            kept = this;
        }
    }
    thread_words::LIST.set(kept.expose_provenance());
}

/// Ends a lane, if that has not happened before. Its thread does this, or the writer when the thread has ended. Neither may use it
/// afterwards, except by the writer's own reference.
pub(super) fn end_once(lane: *mut Lane) {
    // SAFETY: the caller has a reference, or is the thread whose reference is released here, once.
    unsafe {
        if (*lane).release_once() {
            (*lane).end_of_thread();
            Lane::release(lane);
        }
    }
}
