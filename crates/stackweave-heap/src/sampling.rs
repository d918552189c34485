//! The scale of sampled allocations.
//!
//! A sampling recorder records an allocation if one of its bytes is hit, where bytes are hit at random, one in `every`
//! on average. An allocation of `size` bytes is hit with the probability `1 - exp(-size / every)`, so each one that is
//! hit stands for the reciprocal of it: sums are right on average, for each call site and each size.

/// Returns how many blocks and bytes a sampled allocation of this size stands for, if one byte in `every` is hit. Size
/// 0 is treated like size 1.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub fn stands_for(size: u64, every: u64) -> (f64, f64) {
    let size = size.max(1) as f64;
    let blocks = 1.0 / -(-size / every.max(1) as f64).exp_m1();
    (blocks, blocks * size)
}

/// The number of blocks and bytes that an allocation counts for. Sums of weights are rounded by [`Scale::whole`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// The blocks.
    pub blocks: u64,
    /// The bytes.
    pub bytes: u64,
}

/// How allocations are counted: unscaled, or as a sample, with a binary fraction so that estimates are rounded only
/// after they are added up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scale {
    /// 0 if every allocation is recorded.
    every: u64,
}

/// The number of fraction bits. Sums of 2^53 bytes and more still fit.
const FRACTION: u32 = 10;
/// Larger blocks count with this size: a damaged recording must not spoil all sums.
const MOST: u64 = 1 << 50;

impl Scale {
    /// Creates a scale for allocations of which one byte in this many was sampled; `None` if all were recorded.
    pub fn new(sample_every: Option<u64>) -> Self {
        Self { every: sample_every.map_or(0, |every| every.clamp(1, MOST)) }
    }

    /// Returns the weight of an allocation.
    #[inline]
    pub fn weight(self, size: u64) -> Weight {
        if self.every == 0 { Weight { blocks: 1, bytes: size.min(MOST) } } else { self.estimate(size, size) }
    }

    /// Returns the weight of `part` bytes of an allocation of `size` bytes.
    pub fn weight_of_part(self, size: u64, part: u64) -> Weight {
        if self.every == 0 { Weight { blocks: 1, bytes: part.min(MOST) } } else { self.estimate(size, part) }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and far below 2^63")]
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn estimate(self, size: u64, part: u64) -> Weight {
        let size = size.min(MOST);
        let (blocks, bytes) = stands_for(size, self.every);
        let bytes = if size == 0 { bytes } else { bytes * (part.min(size) as f64 / size as f64) };
        let fixed = |value: f64| (value * f64::from(1 << FRACTION)).round() as u64;
        Weight { blocks: fixed(blocks), bytes: fixed(bytes) }
    }

    /// Rounds a sum of weights.
    #[inline]
    pub fn whole(self, sum: u64) -> u64 {
        if self.every == 0 { sum } else { (sum >> FRACTION) + (sum >> (FRACTION - 1) & 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_block_stands_for_itself_and_a_small_one_for_those_not_sampled() {
        let (blocks, bytes) = stands_for(1 << 30, 1 << 19);
        assert!((blocks - 1.0).abs() < 1e-9 && (bytes - f64::from(1 << 30)).abs() < 1.0);
        let (blocks, bytes) = stands_for(64, 1 << 19);
        assert!((bytes - f64::from((1 << 19) + 32)).abs() < 1.0, "{bytes}");
        assert!((blocks - bytes / 64.0).abs() < 1e-6);
        assert_eq!(stands_for(0, 100), stands_for(1, 100));
        assert!(stands_for(5, 0).0 >= 1.0);
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        for scale in [Scale::new(None), Scale::new(Some(4096))] {
            let whole = scale.whole(scale.weight(100_000).bytes);
            let parts = [1, 9_999, 40_000, 50_000].map(|part| scale.whole(scale.weight_of_part(100_000, part).bytes));
            assert!(whole.abs_diff(parts.iter().sum()) <= 2, "{whole} {parts:?}");
            assert_eq!(scale.weight_of_part(100_000, 100_000), scale.weight(100_000));
        }
    }

    #[test]
    fn fractions_are_added_up_before_they_are_rounded() {
        let scale = Scale::new(Some(64));
        let one = scale.weight(64).blocks;
        assert_eq!(scale.whole(one), 2);
        assert_eq!(scale.whole(1000 * one), 1582);
    }

    #[test]
    fn values_of_damaged_recordings_are_limited() {
        for scale in [Scale::new(None), Scale::new(Some(1)), Scale::new(Some(u64::MAX))] {
            assert!(scale.weight(u64::MAX).bytes <= 1 << 63, "{scale:?}");
        }
    }
}
