//! Chooses the allocations of a sampled recording by their bytes.
//!
//! Samples are a Poisson process over the bytes that a thread allocates: an allocation of `s` bytes is recorded with
//! the probability `1 - exp(-s / every)`, independently of earlier ones. A recorded allocation therefore stands for `s
//! / (1 - exp(-s / every))` bytes, and sums of these are right on average, for each site. Blocks of no bytes count as
//! blocks of one byte.
//!
//! Hot file: [`count_unsampled`] neither allocates nor locks nor calls the system, and is async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hook_threads::{HookThread, NOT_BEGUN};

/// The seed of the next thread's random numbers; each thread has its own sequence.
static SEED: AtomicU64 = AtomicU64::new(0);
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sets the seed. The same seed gives the same sequences.
pub(crate) fn seed(seed: u64) {
    SEED.store(seed, Ordering::Relaxed);
}

/// Counts these bytes and returns true if none of them is a sample. Otherwise, or if the countdown has not begun,
/// counts nothing and returns false.
#[inline(always)]
pub(crate) fn count_unsampled(thread: &HookThread, size: usize) -> bool {
    let size = (size | usize::from(size == 0)) as u64;
    let left = thread.bytes_to_sample.load(Ordering::Relaxed);
    if size < left {
        thread.bytes_to_sample.store(left - size, Ordering::Relaxed);
        return true;
    }
    false
}

/// Counts these bytes, and returns whether one of them is a sample; there is one for `every` bytes on average.
#[cold]
#[inline(never)]
pub(crate) fn is_chosen(thread: &HookThread, size: usize, every: u64) -> bool {
    if thread.bytes_to_sample.load(Ordering::Relaxed) == NOT_BEGUN {
        // Mixed, because the next thread's seed is only one step further.
        thread.random.set(mixed(SEED.fetch_add(GOLDEN, Ordering::Relaxed)));
        thread.bytes_to_sample.store(interval(thread, every), Ordering::Relaxed);
    }
    if count_unsampled(thread, size) {
        return false;
    }
    // The rest of the interval after a sample has the same distribution as a whole one.
    thread.bytes_to_sample.store(interval(thread, every), Ordering::Relaxed);
    true
}

/// Returns the number of bytes up to and including the next sample: a geometric random number, at least 1.
fn interval(thread: &HookThread, every: u64) -> u64 {
    const LONGEST: f64 = 4e18;
    let bytes = -uniform(thread).ln() * every as f64;
    bytes.min(LONGEST) as u64 + 1
}

/// Returns a random number above 0, and at most 1.
fn uniform(thread: &HookThread) -> f64 {
    let state = thread.random.get().wrapping_add(GOLDEN);
    thread.random.set(state);
    ((mixed(state) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

const fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
