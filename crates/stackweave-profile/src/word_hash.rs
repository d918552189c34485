//! Maps whose keys are one word, and nobody's to choose: ids and frames.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by such keys.
pub type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;
pub(crate) type WordSet<K> = HashSet<K, BuildHasherDefault<WordHasher>>;

/// One multiplication, both halves of which are used: the map looks at the lowest bits and at the highest.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordHasher(u64);

const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    #[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(ODD);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn neighbours_and_pages_are_spread_in_the_low_and_the_high_bits() {
        let build = BuildHasherDefault::<WordHasher>::default();
        for step in [1, 16, 4096, 1 << 29, 1 << 53] {
            let hashes: Vec<u64> = (0..1024_u64).map(|number| build.hash_one(number.wrapping_mul(step))).collect();
            for shift in [0, 57] {
                let seen: HashSet<u64> = hashes.iter().map(|hash| (hash >> shift) & 127).collect();
                assert!(seen.len() > 100, "{} of 128 for steps of {step:#x} at bit {shift}", seen.len());
            }
        }
    }
}
