//! Guards the callbacks of a host: once the gate is closed, they are not running and are not called again.
//!
//! It is not a lock: many threads can be inside at once, and closing it waits until the other threads have left. A forked
//! child has none of the parent's threads, so it does not wait for them.

use std::cell::Cell;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The process id, the number of threads inside, and whether the gate is closed, from the upper bits to the lowest.
#[derive(Debug)]
pub(crate) struct CallbackGate(AtomicU64);

const CLOSED: u64 = 1;
const ONE: u64 = 2;
const PROCESS_SHIFT: u32 = 32;

thread_local! {
    /// The number of gates that this thread is inside.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Allows a callback to run until this is dropped.
#[derive(Debug)]
pub(crate) struct CallbackPermit<'a>(&'a CallbackGate);

impl CallbackGate {
    pub(crate) const fn closed() -> Self {
        Self(AtomicU64::new(CLOSED))
    }

    pub(crate) fn open(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Enters the gate; returns `None` if it is closed.
    pub(crate) fn enter(&self) -> Option<CallbackPermit<'_>> {
        let mine = u64::from(process::id()) << PROCESS_SHIFT;
        let entered = |state: u64| {
            // Threads of the parent process are not in this one.
            let here = if state >> PROCESS_SHIFT << PROCESS_SHIFT == mine { state } else { mine };
            (state & CLOSED == 0).then_some(here + ONE)
        };
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, entered).ok()?;
        INSIDE.set(INSIDE.get() + 1);
        Some(CallbackPermit(self))
    }

    /// Closes the gate, and waits until no thread is inside. Must not be called [in a callback](is_inside_callback).
    pub(crate) fn close(&self) {
        let mine = u64::from(process::id());
        self.0.fetch_or(CLOSED, Ordering::AcqRel);
        loop {
            let state = self.0.load(Ordering::Acquire);
            if state >> PROCESS_SHIFT != mine || state as u32 & !(CLOSED as u32) == 0 {
                return;
            }
            thread::yield_now();
        }
    }
}

impl Drop for CallbackPermit<'_> {
    fn drop(&mut self) {
        let mine = u64::from(process::id());
        let left = |state: u64| (state >> PROCESS_SHIFT == mine).then(|| state - ONE);
        let _ = self.0.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, left);
        INSIDE.set(INSIDE.get() - 1);
    }
}

/// Returns whether this thread is running a callback. Closing a gate there could wait forever.
pub(crate) fn is_inside_callback() -> bool {
    INSIDE.get() != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_closed_gate_admits_no_thread() {
        let gate = CallbackGate::closed();
        assert!(gate.enter().is_none());
        gate.open();
        let (one, two) = (gate.enter().unwrap(), gate.enter().unwrap());
        assert!(is_inside_callback());
        drop((one, two));
        assert!(!is_inside_callback());
        gate.close();
        assert!(gate.enter().is_none());
    }

    #[test]
    fn closing_waits_for_the_threads_inside() {
        let (gate, left) = (CallbackGate::closed(), AtomicBool::new(false));
        gate.open();
        thread::scope(|scope| {
            let permit = gate.enter().unwrap();
            let closer = scope.spawn(|| {
                gate.close();
                assert!(left.load(Ordering::SeqCst));
            });
            while gate.enter().is_some() {
                thread::yield_now();
            }
            left.store(true, Ordering::SeqCst);
            drop(permit);
            closer.join().unwrap();
        });
    }

    /// Returns the state of a gate that this many threads of another process are inside.
    fn state_in_another_process(count: u64) -> u64 {
        (u64::from(process::id() + 1) << PROCESS_SHIFT) + count * ONE
    }

    #[test]
    fn closing_does_not_wait_for_threads_of_another_process() {
        let gate = CallbackGate(AtomicU64::new(state_in_another_process(3)));
        let permit = gate.enter().unwrap();
        assert_eq!(gate.0.load(Ordering::Relaxed), (u64::from(process::id()) << PROCESS_SHIFT) + ONE);
        drop(permit);
        gate.close();
        let left_behind = CallbackGate(AtomicU64::new(state_in_another_process(3)));
        left_behind.close();
        assert!(left_behind.enter().is_none());
    }
}
