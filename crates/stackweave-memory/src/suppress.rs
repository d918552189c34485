//! Suppresses recording on a thread, for a time or forever.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use crate::hook_threads::{HookThread, NEVER_RECORDED, SUPPRESSED};

/// While it lives, nothing that the calling thread allocates or frees is recorded: for allocations that are not the
/// program's.
#[derive(Debug)]
#[must_use = "recording is suppressed only while the guard lives"]
pub struct SuppressGuard {
    thread: Option<&'static HookThread>,
    before: usize,
    /// The guard belongs to the thread that created it.
    of_thread: PhantomData<*const ()>,
}

impl SuppressGuard {
    /// Suppresses recording on the calling thread. Guards may be nested.
    pub fn begin() -> Self {
        let thread = HookThread::current_or_attach();
        let before = thread.map_or(0, |thread| thread.busy.load(Ordering::Relaxed));
        if let Some(thread) = thread.filter(|_| before == 0) {
            thread.busy.store(SUPPRESSED, Ordering::Relaxed);
        }
        Self { thread, before, of_thread: PhantomData }
    }

    /// Suppresses recording on the calling thread forever: it is one of ours.
    pub fn for_ever() {
        if let Some(thread) = HookThread::current_or_attach() {
            thread.busy.store(NEVER_RECORDED, Ordering::Relaxed);
        }
    }
}

impl Drop for SuppressGuard {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.filter(|_| self.before == 0) {
            thread.busy.store(0, Ordering::Relaxed);
        }
    }
}
