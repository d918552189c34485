//! The results of captures whose stacks may be captured again, so that these need not be woven again.
//!
//! A result is found by the hash of everything that determines it once both walks are done. Two keys are taken for
//! equal if their hashes are, as two stacks are in the table of all stacks.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use core::sync::atomic::{Ordering, compiler_fence};

use stackweave_core::StackId;
use stackweave_unwind::{Captured, StackMark};

use crate::request::{Capture, CaptureRequest, CaptureStart};
use crate::sources::WalkedSources;

/// The number of results in a cache line.
const WAYS: usize = 4;
/// One page. The first access of a thread to a page is expensive.
const FIRST_SETS: usize = 64;
const MAX_SETS: usize = 1 << 12;
const GROWTH: usize = 4;

/// The key of a result, which is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaptureKey(u64);

/// Some results. All zeros are a valid value: none.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct CaptureSet {
    keys: [u64; WAYS],
    /// Each the stack, and above it whether that was cut.
    results: [u64; WAYS],
}

/// The known results. All zeros are a valid value.
#[derive(Debug)]
pub(crate) struct KnownCaptures {
    sets: [CaptureSet; MAX_SETS],
    /// The number of sets in use, less [`FIRST_SETS`].
    more: usize,
    /// Number of results that were stored since there are as many.
    stored: usize,
}

const CUT: u64 = 1 << 32;

impl CaptureKey {
    /// Returns the key of a capture; `None` if its result can't be reused: without native frames there is nothing
    /// to weave.
    #[inline(always)]
    pub(crate) fn new(
        request: &CaptureRequest,
        walked: &WalkedSources,
        native: Captured,
        mark: StackMark,
    ) -> Option<Self> {
        if !request.native || !mark.may_repeat() {
            return None;
        }
        let (start, first, second) = words_of(&request.start);
        let kinds = start << 2 | u64::from(request.script) << 1 | u64::from(request.python);
        let stops = (native.stop as u64) << 8 | walked.stop as u64;
        // Multiplied by different odd numbers, so that none waits for another.
        let sum = (mark.number ^ mark.thread_state.rotate_left(40))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(walked.hash.wrapping_mul(0xd6e8_feb8_6659_fd93))
            .wrapping_add(((native.len as u64) << 32 | walked.len as u64).wrapping_mul(0xa076_1d64_78bd_642f))
            .wrapping_add((kinds << 16 | stops).wrapping_mul(0xe703_7ed1_a0b4_28db))
            .wrapping_add((request.skip as u64).wrapping_mul(0x8ebc_6af0_9c88_c6e3))
            .wrapping_add((request.limit as u64).wrapping_mul(0x5896_36c2_55b6_7a29))
            .wrapping_add(first.wrapping_mul(0x1d8e_4e27_c47d_124f))
            .wrapping_add(second.wrapping_mul(0xeb44_acca_b455_d165));
        let mixed = (sum ^ sum >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Some(Self((mixed ^ mixed >> 29).max(1)))
    }
}

impl KnownCaptures {
    #[inline(always)]
    fn place(&self, key: CaptureKey) -> usize {
        key.0 as usize & (FIRST_SETS + self.more - 1) & (MAX_SETS - 1)
    }

    /// Returns the result of an earlier capture with this key.
    #[inline(always)]
    pub(crate) fn find(&self, key: CaptureKey, walked: &WalkedSources, native: Captured) -> Option<Capture> {
        let set = &self.sets[self.place(key)];
        let result = (0..WAYS).fold(0, |found, way| if set.keys[way] == key.0 { set.results[way] } else { found });
        let stack = Some(StackId::new(result as u32)?);
        Some(Capture { stack, native_stop: native.stop, source_stop: walked.stop, is_cut: result & CUT != 0 })
    }

    /// Stores the result of a capture, if it has a stack.
    #[inline(always)]
    pub(crate) fn keep(&mut self, key: CaptureKey, capture: Capture) {
        let Some(stack) = capture.stack else { return };
        self.stored += 1;
        let sets = FIRST_SETS + self.more;
        if self.stored > sets * WAYS / 2 && sets < MAX_SETS {
            // Those stored before are no longer found, and are stored again.
            (self.more, self.stored) = ((sets * GROWTH).min(MAX_SETS) - FIRST_SETS, 0);
        }
        let place = self.place(key);
        let set = &mut self.sets[place];
        // A signal handler may jump out of here: a key always has its result.
        for way in (1..WAYS).rev() {
            set.keys[way] = 0;
            compiler_fence(Ordering::SeqCst);
            set.results[way] = set.results[way - 1];
            compiler_fence(Ordering::SeqCst);
            set.keys[way] = set.keys[way - 1];
        }
        set.keys[0] = 0;
        compiler_fence(Ordering::SeqCst);
        set.results[0] = u64::from(stack.get()) | if capture.is_cut { CUT } else { 0 };
        compiler_fence(Ordering::SeqCst);
        set.keys[0] = key.0;
    }
}

#[inline(always)]
fn words_of(start: &CaptureStart) -> (u64, u64, u64) {
    match start {
        CaptureStart::Caller => (1, 0, 0),
        CaptureStart::OutsideOf(range) => (2, range.start, range.end),
        CaptureStart::CallerOf(place) => (3, place.0, 0),
        CaptureStart::PythonCaller => (4, 0, 0),
    }
}
