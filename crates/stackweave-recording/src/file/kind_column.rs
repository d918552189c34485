//! The kinds of the events of a block: a list of them, and for each event its index in the list, in as few bits as necessary.

use super::error::BlockError;
use super::varint::Cursor;

/// The structure of a kind's events, in one byte: the number of words, and whether a byte string follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape(u8);

const HAS_BYTES: u8 = 0x80;

impl Shape {
    #[expect(clippy::cast_possible_truncation, reason = "a kind has few fields")]
    pub(super) const fn new(words: usize, has_bytes: bool) -> Self {
        Self(words as u8 | if has_bytes { HAS_BYTES } else { 0 })
    }

    pub(super) const fn from_number(number: u8) -> Self {
        Self(number)
    }

    pub(super) const fn number(self) -> u8 {
        self.0
    }

    pub(super) const fn words(self) -> usize {
        (self.0 & !HAS_BYTES) as usize
    }

    pub(super) const fn has_bytes(self) -> bool {
        self.0 & HAS_BYTES != 0
    }
}

/// Returns the number of bits of an index into a list of `kinds` kinds.
const fn width(kinds: usize) -> usize {
    match kinds {
        0 | 1 => 0,
        2 => 1,
        3 | 4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

/// Appends the indices, the first in the lowest bits of a byte.
pub(super) fn write(indices: &[u8], kinds: usize, out: &mut Vec<u8>) {
    match width(kinds) {
        0 => {}
        8 => out.extend_from_slice(indices),
        width => {
            let packed = indices.chunks(8 / width);
            out.extend(packed.map(|chunk| chunk.iter().rev().fold(0, |byte, index| byte << width | index)));
        }
    }
}

/// The indices of the kinds of a block's events.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindIndices<'a> {
    packed: &'a [u8],
    kinds: usize,
    count: usize,
}

impl<'a> KindIndices<'a> {
    /// Reads them from `from`.
    pub(super) fn take(from: &mut Cursor<'a>, kinds: usize, count: usize) -> Result<Self, BlockError> {
        let bits = count.checked_mul(width(kinds)).ok_or(BlockError::TooMuch)?;
        Ok(Self { packed: from.take(bits.div_ceil(8))?, kinds, count })
    }

    #[inline]
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        let width = width(self.kinds);
        let mask = (1 << width) - 1;
        (0..self.count).map(move |event| {
            let bit = event * width;
            // If the width is 0, there may be no bytes.
            let byte = self.packed.get(bit / 8).copied().unwrap_or(0);
            usize::from(byte) >> (bit % 8) & mask
        })
    }

    /// Returns the number of events of each kind.
    pub(super) fn counts(self) -> Result<[usize; 256], BlockError> {
        let mut counts = [0; 256];
        self.iter().for_each(|index| counts[index] += 1);
        let unlisted: usize = counts[self.kinds..].iter().sum();
        if unlisted == 0 { Ok(counts) } else { Err(BlockError::Contradiction) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "at most 255 kinds")]
    fn indices_round_trip_in_as_few_bits_as_necessary() {
        for (kinds, bytes) in [(1, 0), (2, 3), (3, 5), (4, 5), (5, 10), (16, 10), (17, 19), (255, 19)] {
            let indices: Vec<u8> = (0..19).map(|event| (event * 7 % kinds) as u8).collect();
            let mut out = Vec::new();
            write(&indices, kinds, &mut out);
            assert_eq!(out.len(), bytes, "{kinds}");
            let read = KindIndices::take(&mut Cursor::new(&out), kinds, indices.len()).unwrap();
            assert_eq!(read.iter().map(|index| index as u8).collect::<Vec<_>>(), indices, "{kinds}");
            assert_eq!(read.counts().unwrap().iter().sum::<usize>(), indices.len());
        }
    }

    #[test]
    fn an_index_beyond_the_list_is_rejected() {
        let indices = KindIndices::take(&mut Cursor::new(&[0b1101_0000]), 3, 4).unwrap();
        assert_eq!(indices.counts(), Err(BlockError::Contradiction));
        assert_eq!(KindIndices::take(&mut Cursor::new(&[0]), 2, 9).err(), Some(BlockError::EndsEarly));
        assert_eq!(KindIndices::take(&mut Cursor::new(&[0]), 2, usize::MAX).err(), Some(BlockError::EndsEarly));
    }
}
