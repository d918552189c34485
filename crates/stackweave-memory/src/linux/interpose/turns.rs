//! What is known of the modules, for one thread at a time, and never waited for in a hook.
//!
//! Whoever has the turn may have the lock of the loader's list, which glibc does not free in a forked child. So a fork takes
//! the turn, too, and the child finds both free.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::platform::interpose::loader::PATIENCE;

/// A value that one thread at a time has.
#[derive(Debug)]
pub(super) struct Turns<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a `Turn`, and there is one at a time.
unsafe impl<T: Send> Sync for Turns<T> {}

impl<T> Turns<T> {
    pub(super) const fn new(value: T) -> Self {
        Self { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The turn, if nobody has it.
    pub(super) fn try_take(&self) -> Option<Turn<'_, T>> {
        self.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok().then_some(Turn(self))
    }

    /// The turn, if it is not kept for long: not by a thread that is gone, nor by what a signal handler has interrupted.
    pub(super) fn take(&self) -> Option<Turn<'_, T>> {
        for _ in 0..PATIENCE {
            if let Some(turn) = self.try_take() {
                return Some(turn);
            }
            std::thread::yield_now();
        }
        None
    }

    /// Gives back a turn that was forgotten.
    ///
    /// # Safety
    /// It was, and is not given back twice.
    pub(super) unsafe fn give_back(&self) {
        self.is_taken.store(false, Ordering::Release);
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
        self.0.is_taken.store(false, Ordering::Release);
    }
}
