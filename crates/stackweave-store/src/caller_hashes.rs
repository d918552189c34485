//! The hash of a stack some of whose callers were hashed before.
//!
//! The next stack of a thread often shares most callers with the last one. Their part of the hash does not depend
//! on their callees, so it is kept, and only new frames are hashed.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::fmt;

use stackweave_core::RawFrame;

use crate::stack_hash::{StackHasher, weigh, weight_after};

/// The hashes of the last hashed stack: one for each of its callers' stacks, of up to `N` frames. All zeros are a
/// valid value, for which no frames are known.
#[repr(C)]
pub struct CallerHashes<const N: usize> {
    /// Number of computed `weights`.
    weighted: usize,
    /// The weight of a frame, by its number of callers.
    weights: [u128; N],
    /// The hash of the outermost frames, by their number less one.
    hashers: [StackHasher; N],
}

impl<const N: usize> CallerHashes<N> {
    /// Returns the hasher of these frames, innermost first. The outermost `known` frames must be the same as in
    /// the last call.
    ///
    /// # Panics
    /// If there are more than `N` frames, or fewer than `known`.
    #[inline]
    pub fn hash(&mut self, frames: &[RawFrame], known: usize) -> StackHasher {
        if self.weighted < frames.len() {
            self.compute_weights(frames.len());
        }
        let mut hasher = known.checked_sub(1).map_or(StackHasher::new(), |last| self.hashers[last]);
        let new = frames.len() - known;
        let (weights, hashers) = (&self.weights[known..][..new], &mut self.hashers[known..][..new]);
        for ((frame, weight), kept) in frames[..new].iter().rev().zip(weights).zip(hashers) {
            hasher = weigh(hasher, *frame, *weight);
            *kept = hasher;
        }
        hasher
    }

    #[cold]
    #[inline(never)]
    fn compute_weights(&mut self, count: usize) {
        for index in self.weighted..count {
            self.weights[index] = index.checked_sub(1).map_or(1, |before| weight_after(self.weights[before]));
        }
        self.weighted = count;
    }
}

impl<const N: usize> fmt::Debug for CallerHashes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerHashes").field("weighted", &self.weighted).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::CodeAddress;

    const ROOM: usize = 64;

    fn none() -> CallerHashes<ROOM> {
        CallerHashes { weighted: 0, weights: [0; ROOM], hashers: [StackHasher::new(); ROOM] }
    }

    fn frame(word: u64) -> RawFrame {
        RawFrame::native(CodeAddress::return_address(word))
    }

    /// A frame is named by its caller and a word, outermost first.
    #[test]
    fn known_callers_do_not_change_the_hash() {
        let mut hashes = none();
        let mut last: Vec<RawFrame> = Vec::new();
        let mut random = 7_u64;
        for _ in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let known = (random >> 33) as usize % (last.len() + 1);
            let new = (random >> 48) as usize % (ROOM - known + 1);
            let mut frames: Vec<RawFrame> = (0..new as u64).map(|index| frame(random ^ index)).collect();
            frames.extend_from_slice(&last[last.len() - known..]);
            assert_eq!(hashes.hash(&frames, known), StackHasher::of(&frames));
            last = frames;
        }
    }

    #[test]
    fn an_identical_stack_is_completely_known() {
        let mut hashes = none();
        let frames: Vec<RawFrame> = (0..9).map(frame).collect();
        let first = hashes.hash(&frames, 0);
        assert_eq!(hashes.hash(&frames, 9), first);
        assert_eq!(hashes.hash(&[], 0), StackHasher::new());
    }
}
