//! What is known of the modules, for one thread at a time, and never waited for in a hook.
//!
//! Whoever has the turn may have the lock of the loader's list, which glibc does not free in a forked child. So a fork takes
//! the turn, too, and the child finds both free.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long to wait for what is only ever held for a moment, by a thread that may not get to run for a while.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tries until it is had, or for so long that it never will be.
pub(super) fn patiently<R>(mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
    let mut since = None;
    loop {
        for _ in 0..100 {
            if let Some(had) = attempt() {
                return Some(had);
            }
            std::thread::yield_now();
        }
        if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return None;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// A value that one thread at a time has.
#[derive(Debug)]
pub(super) struct Turns<T> {
    /// The thread that has it; 0: nobody.
    owner: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a `Turn`, and there is one at a time.
unsafe impl<T: Send> Sync for Turns<T> {}

impl<T> Turns<T> {
    pub(super) const fn new(value: T) -> Self {
        Self { owner: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// The turn, if nobody has it.
    pub(super) fn try_take(&self) -> Option<Turn<'_, T>> {
        self.owner
            .compare_exchange(0, this_thread(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(Turn(self))
    }

    /// The turn, if it is not kept for long: not by a thread that is gone, nor by what a signal handler has interrupted.
    pub(super) fn take(&self) -> Option<Turn<'_, T>> {
        let is_ours = || self.owner.load(Ordering::Relaxed) == this_thread();
        patiently(|| if is_ours() { Some(None) } else { self.try_take().map(Some) }).flatten()
    }

    /// Gives back a turn that was forgotten.
    ///
    /// # Safety
    /// It was, and is not given back twice.
    pub(super) unsafe fn give_back(&self) {
        self.owner.store(0, Ordering::Release);
    }
}

/// The turn.
#[derive(Debug)]
pub(super) struct Turn<'a, T>(&'a Turns<T>);

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this is the only turn.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.0.owner.store(0, Ordering::Release);
    }
}

fn this_thread() -> usize {
    // SAFETY: no preconditions. It is the same in a forked child.
    (unsafe { libc::pthread_self() }) as usize
}
