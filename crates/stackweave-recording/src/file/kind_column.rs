//! The kinds of the events of a block: which there are, and for each event its place among them in as few bits as do.

use super::error::BlockError;
use super::varint::Cursor;

/// What an event of some kind consists of, in one byte: words, and whether a byte string follows.
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

/// How many bits the place of a kind among so many takes.
const fn width(kinds: usize) -> usize {
    match kinds {
        0 | 1 => 0,
        2 => 1,
        3 | 4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

/// Appends the places, the first in the lowest bits of a byte.
pub(super) fn write(places: &[u8], kinds: usize, out: &mut Vec<u8>) {
    match width(kinds) {
        0 => {}
        8 => out.extend_from_slice(places),
        width => {
            let packed = places.chunks(8 / width);
            out.extend(packed.map(|chunk| chunk.iter().rev().fold(0, |byte, place| byte << width | place)));
        }
    }
}

/// The places of as many events as there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'a> {
    packed: &'a [u8],
    kinds: usize,
    count: usize,
}

impl<'a> Places<'a> {
    /// Takes them out of `from`.
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
            // Without a width there may be no bytes at all.
            let byte = self.packed.get(bit / 8).copied().unwrap_or(0);
            usize::from(byte) >> (bit % 8) & mask
        })
    }

    /// How many events there are of each kind.
    pub(super) fn counts(self) -> Result<[usize; 256], BlockError> {
        let mut counts = [0; 256];
        self.iter().for_each(|place| counts[place] += 1);
        let strangers: usize = counts[self.kinds..].iter().sum();
        if strangers == 0 { Ok(counts) } else { Err(BlockError::Contradiction) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "at most 255 kinds")]
    fn places_come_back_in_as_few_bits_as_do() {
        for (kinds, bytes) in [(1, 0), (2, 3), (3, 5), (4, 5), (5, 10), (16, 10), (17, 19), (255, 19)] {
            let places: Vec<u8> = (0..19).map(|event| (event * 7 % kinds) as u8).collect();
            let mut out = Vec::new();
            write(&places, kinds, &mut out);
            assert_eq!(out.len(), bytes, "{kinds}");
            let read = Places::take(&mut Cursor::new(&out), kinds, places.len()).unwrap();
            assert_eq!(read.iter().map(|place| place as u8).collect::<Vec<_>>(), places, "{kinds}");
            assert_eq!(read.counts().unwrap().iter().sum::<usize>(), places.len());
        }
    }

    #[test]
    fn a_kind_that_is_not_in_the_list_is_refused() {
        let places = Places::take(&mut Cursor::new(&[0b1101_0000]), 3, 4).unwrap();
        assert_eq!(places.counts(), Err(BlockError::Contradiction));
        assert_eq!(Places::take(&mut Cursor::new(&[0]), 2, 9).err(), Some(BlockError::EndsEarly));
        assert_eq!(Places::take(&mut Cursor::new(&[0]), 2, usize::MAX).err(), Some(BlockError::EndsEarly));
    }
}
