//! The lanes of the calling thread: one for each recording that it has recorded into.
//!
//! Two words lead to them: the lane that was used last, and the list of all, with a bit that says that the thread is
//! changing it. A signal handler that finds the bit leaves the list alone.
//!
//! Async-signal-safe; a new lane is memory straight from the kernel.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use super::fork;
use super::lane::Lane;
use super::session::Session;
use super::thread_words;

const CHANGING: usize = 1;
/// In place of a list: this thread never records.
const NEVER: usize = 2;

/// The list of the calling thread, while nobody else on the thread can change it.
pub(super) struct Turn(usize);

/// Whose turn it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The thread is in the middle of changing its list, and a signal has come.
    Interrupted,
    /// The thread never records.
    Never,
}

impl Turn {
    pub(super) fn take() -> Result<Self, Refused> {
        let list = thread_words::LIST.get();
        if list == NEVER {
            return Err(Refused::Never);
        }
        if list & CHANGING != 0 {
            return Err(Refused::Interrupted);
        }
        thread_words::LIST.set(list | CHANGING);
        compiler_fence(Ordering::SeqCst);
        Ok(Self(list))
    }

    /// The lane of this session, made if there is none. `None` without memory.
    pub(super) fn lane(&mut self, session: &Arc<Session>) -> Option<&'static Lane> {
        let lane = self.find(session).or_else(|| self.add(session))?;
        thread_words::LANE.set(ptr::from_ref(lane).expose_provenance());
        Some(lane)
    }

    fn find(&self, session: &Arc<Session>) -> Option<&'static Lane> {
        let wanted = Arc::as_ptr(session).addr();
        let mut next: *mut Lane = ptr::with_exposed_provenance_mut(self.0);
        loop {
            // SAFETY: the lanes of a thread's list live until the thread takes them out.
            let lane = unsafe { next.as_ref() }?;
            if lane.is_of(wanted) {
                return Some(lane);
            }
            next = lane.next_of_thread.get();
        }
    }

    fn add(&mut self, session: &Arc<Session>) -> Option<&'static Lane> {
        self.drop_closed();
        let made = Lane::map(session);
        // SAFETY: null, or mapped just now.
        let lane = unsafe { made.as_ref() }?;
        lane.next_of_thread.set(ptr::with_exposed_provenance_mut(self.0));
        self.0 = made.expose_provenance();
        session.introduce(made);
        fork::watch_this_thread();
        Some(lane)
    }

    /// Takes out the lanes of recordings that have stopped, but for one that was interrupted in the middle of an event.
    fn drop_closed(&mut self) {
        thread_words::LANE.set(0);
        let mut next: *mut Lane = ptr::with_exposed_provenance_mut(self.0);
        let mut kept: *mut Lane = ptr::null_mut();
        // SAFETY: as in `find`; one that is taken out is not looked at again.
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

impl Drop for Turn {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        thread_words::LIST.set(self.0);
    }
}

/// The calling thread has used this lane last.
pub(super) fn last() -> *const Lane {
    ptr::with_exposed_provenance(thread_words::LANE.get())
}

/// The calling thread shall never record.
pub(super) fn never() {
    thread_words::LANE.set(0);
    thread_words::LIST.set(NEVER);
}

/// The calling thread has no lanes: those it had are another process's.
pub(super) fn forget_all() {
    thread_words::LANE.set(0);
    thread_words::LIST.set(0);
}

/// The destructors of the calling thread run: the writers get what it has recorded. It may record more, on the same lanes.
pub(super) fn end_of_thread() {
    let list = thread_words::LIST.get();
    if list == NEVER {
        return;
    }
    thread_words::LANE.set(0);
    let mut next: *mut Lane = ptr::with_exposed_provenance_mut(list & !CHANGING);
    let mut kept: *mut Lane = ptr::null_mut();
    // SAFETY: as in `Turn::find`.
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

/// Ends a lane, if nobody has done so yet: the thread that it belongs to, or, when that is gone, the writer. Neither may use
/// it again, unless by the writer's own reference.
pub(super) fn end_once(lane: *mut Lane) {
    // SAFETY: the caller has a reference to it, or is the thread whose reference is given back here, once.
    unsafe {
        if (*lane).give_back_once() {
            (*lane).end_of_thread();
            Lane::release(lane);
        }
    }
}
