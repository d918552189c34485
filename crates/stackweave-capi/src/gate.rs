//! A gate in front of a host's callbacks: once it is closed, none of them runs any more.
//!
//! Not a lock: many pass at once, and whoever closes it waits for those of other threads to come out. A forked child has
//! none of the threads that were inside in its parent, and waits for none.

use std::cell::Cell;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The process, then how many are inside, then whether it is closed.
#[derive(Debug)]
pub(crate) struct Gate(AtomicU64);

const CLOSED: u64 = 1;
const ONE: u64 = 2;
const PROCESS_SHIFT: u32 = 32;

thread_local! {
    /// How many gates this thread is inside of.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// That a callback may run, until this is dropped.
#[derive(Debug)]
pub(crate) struct Pass<'a>(&'a Gate);

impl Gate {
    pub(crate) const fn closed() -> Self {
        Self(AtomicU64::new(CLOSED))
    }

    pub(crate) fn open(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Passes, unless it is closed.
    pub(crate) fn enter(&self) -> Option<Pass<'_>> {
        let mine = u64::from(process::id()) << PROCESS_SHIFT;
        let entered = |state: u64| {
            // Those of a parent are not here.
            let here = if state >> PROCESS_SHIFT << PROCESS_SHIFT == mine { state } else { mine };
            (state & CLOSED == 0).then_some(here + ONE)
        };
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, entered).ok()?;
        INSIDE.set(INSIDE.get() + 1);
        Some(Pass(self))
    }

    /// Closes it, and waits until no other thread is inside. Must not be called [`inside`] of one.
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

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mine = u64::from(process::id());
        let left = |state: u64| (state >> PROCESS_SHIFT == mine).then(|| state - ONE);
        let _ = self.0.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, left);
        INSIDE.set(INSIDE.get() - 1);
    }
}

/// Whether this thread runs a callback: closing a gate could then wait for ever.
pub(crate) fn inside() -> bool {
    INSIDE.get() != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn nobody_passes_a_closed_gate() {
        let gate = Gate::closed();
        assert!(gate.enter().is_none());
        gate.open();
        let (one, two) = (gate.enter().unwrap(), gate.enter().unwrap());
        assert!(inside());
        drop((one, two));
        assert!(!inside());
        gate.close();
        assert!(gate.enter().is_none());
    }

    #[test]
    fn closing_waits_for_those_inside() {
        let (gate, left) = (Gate::closed(), AtomicBool::new(false));
        gate.open();
        thread::scope(|scope| {
            let pass = gate.enter().unwrap();
            let closer = scope.spawn(|| {
                gate.close();
                assert!(left.load(Ordering::SeqCst));
            });
            while gate.enter().is_some() {
                thread::yield_now();
            }
            left.store(true, Ordering::SeqCst);
            drop(pass);
            closer.join().unwrap();
        });
    }

    /// So many are inside, in another process.
    fn elsewhere(count: u64) -> u64 {
        (u64::from(process::id() + 1) << PROCESS_SHIFT) + count * ONE
    }

    #[test]
    fn those_of_another_process_are_not_waited_for() {
        let gate = Gate(AtomicU64::new(elsewhere(3)));
        let pass = gate.enter().unwrap();
        assert_eq!(gate.0.load(Ordering::Relaxed), (u64::from(process::id()) << PROCESS_SHIFT) + ONE);
        drop(pass);
        gate.close();
        let left_behind = Gate(AtomicU64::new(elsewhere(3)));
        left_behind.close();
        assert!(left_behind.enter().is_none());
    }
}
