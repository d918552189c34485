//! Waiting for a word to change by futex: without a lock, and async-signal-safe.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Waits until the word is woken, or differs from `expected`, or the timeout elapses. May return early.
pub(super) fn wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    };
    let flags = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time outlive the call, which reads both.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), flags, expected, &raw const timeout) };
}

/// Wakes all threads that wait for the word.
pub(super) fn wake_all(word: &AtomicU32) {
    let flags = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: only the address of the word is used.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), flags, i32::MAX, ptr::null::<libc::timespec>()) };
}

/// The doorbell that the sleeping writer waits for. A ring costs one exchange while the writer is awake.
#[derive(Debug)]
pub(super) struct Doorbell(AtomicU32);

const QUIET: u32 = 0;
const RUNG: u32 = 1;
const ASLEEP: u32 = 2;

impl Doorbell {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(QUIET))
    }

    pub(super) fn ring(&self) {
        if self.0.swap(RUNG, Ordering::SeqCst) == ASLEEP {
            wake_all(&self.0);
        }
    }

    /// Sleeps until it is rung, at most for this long; returns at once if it was rung since the last sleep.
    pub(super) fn sleep(&self, timeout: Duration) {
        if self.0.compare_exchange(QUIET, ASLEEP, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            wait(&self.0, ASLEEP, timeout);
        }
        self.0.store(QUIET, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn a_rung_bell_prevents_the_next_sleep() {
        let bell = Doorbell::new();
        bell.ring();
        bell.sleep(Duration::from_secs(1000));
        bell.sleep(Duration::ZERO);
    }

    #[test]
    fn a_ring_wakes_a_sleeping_thread() {
        let bell = Arc::new(Doorbell::new());
        let sleeper = thread::spawn({
            let bell = Arc::clone(&bell);
            move || bell.sleep(Duration::from_secs(1000))
        });
        while !sleeper.is_finished() {
            bell.ring();
            thread::yield_now();
        }
        sleeper.join().unwrap();
    }
}
