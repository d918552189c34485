//! A lock that hooks never wait for, around what is known of the modules.
//!
//! The thread that holds it may hold the lock of the loader's list, which glibc does not free in a forked child. So a
//! fork takes this lock, too, and the child finds both free.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The time to wait for a lock that is only ever held for a moment, by a thread that may not run for a while.
const PATIENCE: Duration = Duration::from_secs(5);

/// Repeats `attempt` until it succeeds, or for so long that it never will.
pub(super) fn retry<R>(mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
    let mut since = None;
    loop {
        for _ in 0..100 {
            if let Some(result) = attempt() {
                return Some(result);
            }
            std::thread::yield_now();
        }
        if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return None;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// A value that one thread at a time may use.
#[derive(Debug)]
pub(super) struct WalkLock<T> {
    /// The thread that holds the lock; 0: none.
    owner: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a `WalkGuard`, and there is one at a time.
unsafe impl<T: Send> Sync for WalkLock<T> {}

impl<T> WalkLock<T> {
    pub(super) const fn new(value: T) -> Self {
        Self { owner: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock, if it is free.
    pub(super) fn try_lock(&self) -> Option<WalkGuard<'_, T>> {
        self.owner
            .compare_exchange(0, this_thread(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(WalkGuard(self))
    }

    /// Takes the lock, and waits if it is held for a moment. `None` if the calling thread holds it, as in a signal
    /// handler, or if it never becomes free.
    pub(super) fn lock(&self) -> Option<WalkGuard<'_, T>> {
        let is_ours = || self.owner.load(Ordering::Relaxed) == this_thread();
        retry(|| if is_ours() { Some(None) } else { self.try_lock().map(Some) }).flatten()
    }

    /// Releases the lock of a guard that was forgotten.
    ///
    /// # Safety
    /// A guard was forgotten, and its lock is not released twice.
    pub(super) unsafe fn unlock_forgotten(&self) {
        self.owner.store(0, Ordering::Release);
    }
}

/// Releases the lock when it is dropped.
#[derive(Debug)]
pub(super) struct WalkGuard<'a, T>(&'a WalkLock<T>);

impl<T> Deref for WalkGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this is the only guard.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for WalkGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for WalkGuard<'_, T> {
    fn drop(&mut self) {
        self.0.owner.store(0, Ordering::Release);
    }
}

fn this_thread() -> usize {
    // SAFETY: no preconditions. The value is the same in a forked child.
    (unsafe { libc::pthread_self() }) as usize
}
