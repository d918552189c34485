//! The hash of a blob in parts: that of their concatenation, independent of where it was cut.
//!
//! The hash only says where to look. The bytes decide whether two blobs are equal.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

/// Any numbers without a pattern.
const MIX: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = Hasher { state: 0, pending: 0, bits: 0 };
    let mut length = 0_u64;
    for part in parts {
        hasher.push(part);
        length = length.wrapping_add(part.len() as u64);
    }
    // Add the length, so that zeros at the end count.
    folded(folded(hasher.state ^ hasher.pending) ^ length)
}

struct Hasher {
    state: u64,
    /// Bytes that are not a complete word yet, the first one lowest.
    pending: u64,
    /// Their number of bits: less than 64.
    bits: u32,
}

impl Hasher {
    fn push(&mut self, part: &[u8]) {
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word), 64);
        }
        let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.add(word, 8 * u32::try_from(rest.len()).unwrap_or(0));
    }

    /// Adds the low `bits` bits of a word whose others are 0.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are split")]
    fn add(&mut self, word: u64, bits: u32) {
        let both = u128::from(word) << self.bits | u128::from(self.pending);
        let mut sum = self.bits + bits;
        let mut pending = both as u64;
        if sum >= 64 {
            self.state = folded(self.state ^ pending);
            pending = (both >> 64) as u64;
            sum -= 64;
        }
        (self.pending, self.bits) = (pending, sum);
    }
}

/// Folds both halves of a product, so that every bit affects the low and the high bits.
#[expect(clippy::cast_possible_truncation, reason = "the product is split")]
fn folded(word: u64) -> u64 {
    let product = u128::from(word ^ MIX[0]) * u128::from(MIX[1]);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_cuts_do_not_change_the_hash() {
        let bytes: Vec<u8> = (1..=60).collect();
        let whole = hash(&[&bytes]);
        for first in 0..=60 {
            for second in first..=60 {
                assert_eq!(hash(&[&bytes[..first], &bytes[first..second], &bytes[second..]]), whole);
            }
        }
        assert_eq!(hash(&bytes.chunks(1).collect::<Vec<_>>()), whole);
        assert_eq!(hash(&[]), hash(&[b"", b""]));
    }

    /// These are similar in ways that a weak hash does not distinguish.
    #[test]
    fn similar_blobs_have_unrelated_hashes() {
        let base: Vec<u8> = (1..=40).collect();
        let mut blobs: Vec<Vec<u8>> = (0..=40).map(|length| base[..length].to_vec()).collect();
        blobs.extend((1..40).map(|start| base[start..].to_vec()));
        blobs.extend((1..60).map(|length| vec![0; length]));
        for place in 0..40 {
            for bit in 0..8 {
                let mut other = base.clone();
                other[place] ^= 1 << bit;
                blobs.push(other);
            }
            for second in 0..place {
                let mut other = base.clone();
                other.swap(place, second);
                blobs.push(other);
            }
        }
        let distinct =
            |part: fn(u64) -> u64| blobs.iter().map(|blob| part(hash(&[blob]))).collect::<HashSet<_>>().len();
        assert_eq!(distinct(|hash| hash), blobs.len());
        assert_eq!((distinct(|hash| hash >> 24), distinct(|hash| hash << 24)), (blobs.len(), blobs.len()));
    }
}
