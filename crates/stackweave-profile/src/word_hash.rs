//! Maps with keys of one word that no attacker can choose: ids and frames.

use rustc_hash::{FxHashMap, FxHashSet};

/// A map with such keys.
pub type WordMap<K, V> = FxHashMap<K, V>;
pub(crate) type WordSet<K> = FxHashSet<K>;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    #[test]
    fn neighbours_and_pages_are_spread_in_the_low_and_the_high_bits() {
        let build = rustc_hash::FxBuildHasher;
        for step in [1, 16, 4096, 1 << 21, 1 << 29, 1 << 32] {
            let hashes: Vec<u64> = (0..1024_u64).map(|number| build.hash_one(number * step)).collect();
            for shift in [0, 57] {
                let seen: HashSet<u64> = hashes.iter().map(|hash| (hash >> shift) & 127).collect();
                assert!(seen.len() >= 64, "{} of 128 for steps of {step:#x} at bit {shift}", seen.len());
            }
        }
    }
}
