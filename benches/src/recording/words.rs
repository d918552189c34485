//! Events as raw words, without a recorder: the lower limit of the cost and the size of recording them.

use std::arch::x86_64::_rdtsc;
use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::time::Instant;

use super::program::Listener;

const BEGIN: u64 = 1;
const END: u64 = 4;

/// Returns the ticks of the processor.
#[inline]
pub(crate) fn ticks() -> u64 {
    // SAFETY: the instruction reads a register that every processor of this platform has.
    unsafe { _rdtsc() }
}

/// A listener that writes words into a ring, which stays in the cache, and overwrites old ones.
#[derive(Debug)]
pub(super) struct Ring {
    words: Box<[Cell<u64>]>,
    next: Cell<usize>,
}

impl Ring {
    const WORDS: usize = 8 << 10;

    pub(super) fn new() -> Self {
        Self { words: (0..Self::WORDS).map(|_| Cell::new(0)).collect(), next: Cell::new(0) }
    }

    #[inline]
    fn push(&self, word: u64) {
        let next = self.next.get();
        self.words[next % Self::WORDS].set(word);
        self.next.set(next + 1);
    }
}

impl Listener for Ring {
    #[inline]
    fn begin(&self, function: usize) {
        self.push(ticks() << 8 | BEGIN);
        self.push(function as u64);
    }

    #[inline]
    fn end(&self) {
        self.push(ticks() << 8 | END);
    }
}

/// A listener that keeps all words.
#[derive(Debug, Default)]
pub(super) struct Kept {
    words: RefCell<Vec<u64>>,
}

impl Kept {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.words.into_inner().into_iter().flat_map(u64::to_le_bytes).collect()
    }
}

impl Listener for Kept {
    fn begin(&self, function: usize) {
        self.words.borrow_mut().extend([ticks() << 8 | BEGIN, function as u64]);
    }

    fn end(&self) {
        self.words.borrow_mut().push(ticks() << 8 | END);
    }
}

/// A listener that reads the processor's ticks, and does nothing with them.
#[derive(Debug)]
pub(super) struct TicksOnly;

impl Listener for TicksOnly {
    #[inline]
    fn begin(&self, _function: usize) {
        black_box(ticks());
    }

    #[inline]
    fn end(&self) {
        black_box(ticks());
    }
}

/// A listener that reads the operating system's clock, and does nothing with it.
#[derive(Debug)]
pub(super) struct ClockOnly;

impl Listener for ClockOnly {
    #[inline]
    fn begin(&self, _function: usize) {
        black_box(Instant::now());
    }

    #[inline]
    fn end(&self) {
        black_box(Instant::now());
    }
}
