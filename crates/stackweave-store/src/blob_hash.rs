//! The hash of a blob that comes in parts: that of their concatenation, wherever it was cut.
//!
//! It only says where to look. Whether two blobs are equal is decided by their bytes.
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
    // With the length, so that zeros at the end count.
    folded(folded(hasher.state ^ hasher.pending) ^ length)
}

struct Hasher {
    state: u64,
    /// Bytes that do not make a word yet, the first one lowest.
    pending: u64,
    /// How many bits they are: below 64.
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
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are taken apart")]
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

/// Both halves of a product, folded: every bit reaches the low bits and the high ones.
#[expect(clippy::cast_possible_truncation, reason = "the product is taken apart")]
fn folded(word: u64) -> u64 {
    let product = u128::from(word ^ MIX[0]) * u128::from(MIX[1]);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn where_it_is_cut_does_not_matter() {
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

    /// All of these are near each other in some way that a weak hash does not see.
    #[test]
    fn blobs_that_nearly_equal_have_hashes_that_share_nothing() {
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
