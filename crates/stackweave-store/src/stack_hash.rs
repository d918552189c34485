//! The hash of a stack, computed while it is walked.
//!
//! A stack's hash is its identity: lookups compare no frames, so the hashes of two different stacks must be equal
//! with negligible probability. The hash is a polynomial of the frames, modulo 2^128. After mixing, 64 bits are
//! kept, in a bucket that 13 to 28 other bits select. For 100 million different stacks, the probability that any
//! two share all of these is below 10^-7. Comparing frames along the tree would be exact, but takes longer than
//! everything else together.
//!
//! It relies on two properties of the polynomial:
//!
//! - Stacks that differ in one frame never collide before the mixing. Nor do those that differ in two frames, up
//!   to 5,000 frames apart, whose words differ by less than 2^56: the shortest such pair was computed. The
//!   multiplier was chosen for long shortest vectors, also among more than two neighbours.
//! - The innermost frame can be removed or added if only the number of frames is known. So the hash of every
//!   caller costs one multiplication.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use stackweave_core::RawFrame;

/// The multiplier: odd, and 5 modulo 8, so that its powers repeat after 2^126. PCG's multiplier for 128 bits.
const K: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
const K2: u128 = K.wrapping_mul(K);
const K3: u128 = K2.wrapping_mul(K);
const K4: u128 = K3.wrapping_mul(K);
const INVERSE: u128 = inverse(K);
/// Added for each frame, so that a word of zero also counts.
const ONE: u128 = 1 << 64;
/// The sum of `ONE` for four frames.
const ONES: u128 = (K3.wrapping_add(K2).wrapping_add(K).wrapping_add(1)).wrapping_mul(ONE);
/// The multiplier of the final mixing; any odd number without a pattern.
const MIX: u128 = 0xd6e8_feb8_6659_fd93_a076_1d64_78bd_642f;

/// The hash of a stack in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackHash {
    /// The part that the bucket stores. Never 0.
    pub(crate) kept: u64,
    /// The part that selects the bucket.
    pub(crate) bucket: u64,
}

/// Computes the hash of a stack frame by frame, innermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackHasher {
    state: u128,
}

impl StackHasher {
    /// Creates the hasher of a stack without frames.
    pub const fn new() -> Self {
        Self { state: 0 }
    }

    /// Adds the next frame outward. Each depends on the previous one: 1.7 ns by itself, less beside a walk's
    /// loads.
    #[inline]
    pub fn push(&mut self, frame: RawFrame) {
        self.state = self.state.wrapping_mul(K).wrapping_add(ONE).wrapping_add(word(frame));
    }

    /// Returns the hasher of these frames, innermost first.
    #[inline]
    pub fn of(frames: &[RawFrame]) -> Self {
        let mut hasher = Self::new();
        hasher.extend(frames);
        hasher
    }

    /// Adds the next frames outward: the same as pushing each, but four at a time, so that none depends on the
    /// previous one.
    #[inline]
    pub fn extend(&mut self, frames: &[RawFrame]) {
        let (fours, rest) = frames.as_chunks::<4>();
        for &[a, b, c, d] in fours {
            let four = word(a).wrapping_mul(K3).wrapping_add(word(b).wrapping_mul(K2));
            let four = four.wrapping_add(word(c).wrapping_mul(K)).wrapping_add(word(d)).wrapping_add(ONES);
            self.state = self.state.wrapping_mul(K4).wrapping_add(four);
        }
        for frame in rest {
            self.push(*frame);
        }
    }

    /// Returns the hash of all frames so far.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the state is split")]
    pub(crate) fn finish(self) -> StackHash {
        let mixed = (self.state ^ (self.state >> 64)).wrapping_mul(MIX);
        let bucket = (mixed >> 64) as u64;
        StackHash { kept: (mixed as u64 ^ bucket).max(1), bucket }
    }
}

/// Returns the hasher with a new innermost frame, whose weight is `K` to the power of the number of callers.
#[inline]
pub(crate) fn weigh(hasher: StackHasher, frame: RawFrame, weight: u128) -> StackHasher {
    StackHasher { state: hasher.state.wrapping_add(ONE.wrapping_add(word(frame)).wrapping_mul(weight)) }
}

/// Returns the weight of the next frame.
pub(crate) fn weight_after(weight: u128) -> u128 {
    weight.wrapping_mul(K)
}

/// A hasher that can remove and add innermost frames.
#[derive(Debug)]
pub(crate) struct InnermostHasher {
    hasher: StackHasher,
    /// The weight of the next frame to add: `K` to the power of the number of frames.
    weight: u128,
}

impl InnermostHasher {
    /// Creates it from a hasher that has seen `length` frames.
    pub(crate) fn new(hasher: StackHasher, length: usize) -> Self {
        Self { hasher, weight: power(length) }
    }

    /// Removes the innermost frame, which must be this one.
    pub(crate) fn pop(&mut self, frame: RawFrame) {
        self.weight = self.weight.wrapping_mul(INVERSE);
        let term = ONE.wrapping_add(word(frame)).wrapping_mul(self.weight);
        self.hasher.state = self.hasher.state.wrapping_sub(term);
    }

    /// Adds a new innermost frame.
    pub(crate) fn push(&mut self, frame: RawFrame) {
        self.hasher = weigh(self.hasher, frame, self.weight);
        self.weight = weight_after(self.weight);
    }

    pub(crate) fn finish(&self) -> StackHash {
        self.hasher.finish()
    }
}

/// Returns the word of a frame in the polynomial. Frames that differ only in their high bits must also differ in
/// their low bits: a high bit of a word affects nothing below it in the product.
#[inline]
fn word(frame: RawFrame) -> u128 {
    let bits = frame.to_bits();
    u128::from(bits ^ (bits >> 32))
}

/// Returns `K` to the power of `exponent`.
fn power(mut exponent: usize) -> u128 {
    let (mut result, mut square) = (1_u128, K);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        exponent /= 2;
    }
    result
}

/// Returns the multiplicative inverse of `value`. Each round doubles the number of correct bits, which is three at
/// first.
const fn inverse(value: u128) -> u128 {
    let mut result = value;
    let mut round = 0;
    while round < 6 {
        result = result.wrapping_mul(2_u128.wrapping_sub(value.wrapping_mul(result)));
        round += 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use stackweave_core::{CodeAddress, CodeId};

    fn native(address: u64) -> RawFrame {
        RawFrame::native(CodeAddress::return_address(address))
    }

    fn hash_of(frames: &[RawFrame]) -> StackHash {
        StackHasher::of(frames).finish()
    }

    fn stack(length: u64) -> Vec<RawFrame> {
        (0..length).map(|index| native(0x7f12_3456_0000 + index * index * 24)).collect()
    }

    #[test]
    fn hashing_frames_one_by_one_or_together_gives_the_same_hash() {
        for length in 0..40 {
            let frames = stack(length);
            let mut hasher = StackHasher::new();
            for frame in &frames {
                hasher.push(*frame);
            }
            assert_eq!(hasher.finish(), hash_of(&frames), "{length} frames");
            let (inner, outer) = frames.split_at(frames.len() / 3);
            let mut hasher = StackHasher::new();
            hasher.extend(inner);
            hasher.extend(outer);
            assert_eq!(hasher.finish(), hash_of(&frames), "{length} frames in two parts");
        }
    }

    #[test]
    fn innermost_frames_can_be_removed_and_added_again() {
        let frames = stack(70);
        let mut hash = InnermostHasher::new(StackHasher::of(&frames), frames.len());
        for removed in 0..frames.len() {
            assert_eq!(hash.finish(), hash_of(&frames[removed..]));
            hash.pop(frames[removed]);
        }
        assert_eq!(hash.finish(), hash_of(&[]));
        for removed in (0..frames.len()).rev() {
            hash.push(frames[removed]);
            assert_eq!(hash.finish(), hash_of(&frames[removed..]));
        }
    }

    #[test]
    fn the_inverse_multiplies_to_one() {
        assert_eq!(K.wrapping_mul(INVERSE), 1);
        assert_eq!(power(0), 1);
        assert_eq!(power(4), K4);
    }

    /// These are similar in ways that a weak hash does not distinguish.
    #[test]
    fn similar_stacks_have_unrelated_hashes() {
        let base = stack(30);
        let mut stacks: Vec<Vec<RawFrame>> = (0..=30).map(|length| base[..length].to_vec()).collect();
        stacks.extend((1..30).map(|start| base[start..].to_vec()));
        stacks.extend((1..50).map(|length| vec![native(0); length]));
        for place in 0..30 {
            for bit in 0..57 {
                let mut other = base.clone();
                other[place] = native(base[place].to_bits() ^ (1 << bit));
                stacks.push(other);
            }
            for second in 0..place {
                let mut other = base.clone();
                other.swap(place, second);
                stacks.push(other);
            }
            for code in (0..32).filter_map(|bit| CodeId::new(1 << bit)) {
                let mut other = base.clone();
                other[place] = RawFrame::python(code, 2, false);
                stacks.push(other);
            }
        }
        let hashes: Vec<StackHash> = stacks.iter().map(|stack| hash_of(stack)).collect();
        let distinct = |part: fn(&StackHash) -> u64| hashes.iter().map(part).collect::<HashSet<_>>().len();
        assert_eq!(distinct(|hash| hash.kept), stacks.len());
        assert_eq!(distinct(|hash| hash.kept >> 24), stacks.len());
        assert_eq!(distinct(|hash| hash.kept << 24), stacks.len());
        assert_eq!(distinct(|hash| hash.bucket), stacks.len());
        // 32 bits alone may collide once or twice among some thousands.
        assert!(distinct(|hash| hash.bucket & u64::from(u32::MAX)) + 2 >= stacks.len());
    }
}
