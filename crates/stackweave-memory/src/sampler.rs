//! Which allocations are told of, where some are chosen by their bytes.
//!
//! Samples are a Poisson process over the bytes that a thread takes: an allocation of `s` bytes is told with the probability
//! `1 - exp(-s / every)`, whatever was told before it. So one that is told stands for `s / (1 - exp(-s / every))` bytes, and sums of
//! these are right on average, for each place. Blocks of no bytes count as ones of one byte.
//!
//! Hot file: [`passes`] neither allocates nor locks nor calls the system, and is async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::blocks::{Block, NOT_BEGUN};

/// Where the sequences of random numbers of threads begin: each has another one.
static SEED: AtomicU64 = AtomicU64::new(0);
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Begins sequences that nobody foresees; the same ones again for the same seed.
pub(crate) fn seed(seed: u64) {
    SEED.store(seed, Ordering::Relaxed);
}

/// Counts these bytes, unless one of them is a sample: then, or if there is more to find out, false, and nothing is counted.
#[inline(always)]
pub(crate) fn passes(block: &Block, size: usize) -> bool {
    let size = (size | usize::from(size == 0)) as u64;
    let left = block.left.load(Ordering::Relaxed);
    if size < left {
        block.left.store(left - size, Ordering::Relaxed);
        return true;
    }
    false
}

/// Whether one of these bytes is a sample, of which there is one for `every` bytes on average. Counts them.
#[cold]
#[inline(never)]
pub(crate) fn is_chosen(block: &Block, size: usize, every: u64) -> bool {
    if block.left.load(Ordering::Relaxed) == NOT_BEGUN {
        // Mixed, since the next thread's begins one step further.
        block.random.set(mixed(SEED.fetch_add(GOLDEN, Ordering::Relaxed)));
        block.left.store(interval(block, every), Ordering::Relaxed);
    }
    if passes(block, size) {
        return false;
    }
    // What is left of the interval behind a sample is as long as any other.
    block.left.store(interval(block, every), Ordering::Relaxed);
    true
}

/// How many bytes there are up to and with the next sample: a geometric number, from 1 on.
fn interval(block: &Block, every: u64) -> u64 {
    const LONGEST: f64 = 4e18;
    let bytes = -uniform(block).ln() * every as f64;
    bytes.min(LONGEST) as u64 + 1
}

/// A number above 0, and at most 1.
fn uniform(block: &Block) -> f64 {
    let state = block.random.get().wrapping_add(GOLDEN);
    block.random.set(state);
    ((mixed(state) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

const fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
