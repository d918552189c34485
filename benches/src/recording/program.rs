//! A program that does nothing but call: 32 functions, each of which calls two others, down to a depth.
//!
//! At every third level, a pseudo-random number chooses one of the functions, so that the calls don't repeat; the
//! numbers are the same in every run. `python/recordings/program.py` is the same program in Python.

use std::io;
use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};

use crate::meter::thread_cpu_ns;

pub(super) const FUNCTIONS: usize = 32;
const DEPTH: u32 = 13;
pub(super) const CALLS_PER_TREE: usize = (1 << (DEPTH + 1)) - 1;

/// Receives the calls as they begin and end.
pub(super) trait Listener {
    fn begin(&self, function: usize);
    fn end(&self);
}

/// Does nothing.
#[derive(Debug)]
pub(super) struct NoListener;

impl Listener for NoListener {
    fn begin(&self, _function: usize) {}
    fn end(&self) {}
}

/// The amount of work that the program does between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Nothing at all.
    Full,
    /// About as much work as an interpreter does, and as evenly distributed.
    OfPython,
}

/// Calls `trees` trees of functions.
pub(super) fn grow(trees: usize, pace: Pace, listener: &impl Listener) {
    Program { pace, state: 1, levels: 3, listener }.grow(trees);
}

/// Calls the same trees with a pseudo-random choice at every level: hundreds of thousands of different paths.
pub(super) fn grow_wildly(trees: usize, listener: &impl Listener) {
    Program { pace: Pace::OfPython, state: 1, levels: 1, listener }.grow(trees);
}

struct Program<'a, L> {
    pace: Pace,
    state: u64,
    /// The distance between two levels with a pseudo-random choice.
    levels: u32,
    listener: &'a L,
}

impl<L: Listener> Program<'_, L> {
    fn grow(&mut self, trees: usize) {
        for tree in (0..=u32::MAX).take(trees) {
            self.call(0, DEPTH, tree);
        }
    }

    #[inline(never)]
    fn call(&mut self, function: usize, depth: u32, seed: u32) {
        self.listener.begin(function);
        self.work();
        if depth > 0 {
            let seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            self.call(callee(function, 7), depth - 1, seed);
            self.call(
                callee(function, if depth.is_multiple_of(self.levels) && seed & 0x1_0000 == 0 { 5 } else { 3 }),
                depth - 1,
                seed >> 3,
            );
        }
        self.work();
        self.listener.end();
    }

    /// Does nothing at full pace; otherwise does up to 32 multiplications, each of which depends on the one before.
    #[inline]
    fn work(&mut self) {
        if self.pace == Pace::OfPython {
            for _ in 0..=self.state >> 59 {
                self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            }
        }
    }
}

fn callee(function: usize, factor: usize) -> usize {
    (factor * function + factor) % FUNCTIONS
}

/// Does the work on all threads at once, and returns the sum of their CPU nanoseconds.
pub(super) fn together(threads: usize, work: impl Fn() + Sync) -> io::Result<f64> {
    let start = Barrier::new(threads);
    let run = || {
        start.wait();
        let before = thread_cpu_ns();
        work();
        thread_cpu_ns() - before
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let cpu = workers.into_iter().map(ScopedJoinHandle::join).sum::<Result<f64, _>>();
        cpu.map_err(|_| io::Error::other("a thread panicked"))
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[derive(Default)]
    struct Counts {
        begun: Cell<usize>,
        open: Cell<usize>,
        deepest: Cell<usize>,
        /// The sum, over all calls, of the function's number times the position of the call.
        sum: Cell<usize>,
    }

    impl Listener for Counts {
        fn begin(&self, function: usize) {
            assert!(function < FUNCTIONS);
            self.begun.set(self.begun.get() + 1);
            self.sum.set(self.sum.get() + function * self.begun.get());
            self.open.set(self.open.get() + 1);
            self.deepest.set(self.deepest.get().max(self.open.get()));
        }

        fn end(&self) {
            self.open.set(self.open.get() - 1);
        }
    }

    #[test]
    fn a_tree_has_as_many_calls_as_its_constant() {
        let counts = Counts::default();
        grow(2, Pace::OfPython, &counts);
        assert_eq!(counts.begun.get(), 2 * CALLS_PER_TREE);
        assert_eq!((counts.open.get(), counts.deepest.get()), (0, DEPTH as usize + 1));
        assert_eq!(counts.sum.get(), 8_511_326_176, "the program in Python makes the same calls");
        let wild = Counts::default();
        grow_wildly(2, &wild);
        assert_eq!(wild.begun.get(), counts.begun.get());
        assert_ne!(wild.sum.get(), counts.sum.get());
    }
}
