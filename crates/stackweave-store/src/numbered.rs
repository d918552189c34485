//! Values that are known by a number.
//!
//! Numbers follow each other, and values lie in blocks that grow and never move. What a value says of a number that
//! was never given is zero.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::lazy_block::{LazyBlock, ZeroIsValid};

const FIRST_LENGTH: usize = 1 << 12;
/// Enough for all numbers of 32 bits.
const BLOCKS: usize = 21;

#[derive(Debug)]
pub(crate) struct Numbered<T> {
    blocks: [LazyBlock<T>; BLOCKS],
    /// The next number that nobody has had; 0 when there are no more.
    next: AtomicU32,
    /// A number that was taken and is not needed; 0: none.
    spare: AtomicU32,
}

impl<T: ZeroIsValid> Numbered<T> {
    /// Numbers begin with `first`, which is not 0.
    pub(crate) const fn starting_with(first: u32) -> Self {
        Self { blocks: LazyBlock::doubling(FIRST_LENGTH), next: AtomicU32::new(first), spare: AtomicU32::new(0) }
    }

    /// A number that nobody has, and its value, which may be what was there when the number was given back; `None`
    /// if there is no memory, or no number left.
    pub(crate) fn take(&self) -> Option<(u32, &T)> {
        let number = self.take_number()?;
        let Some(value) = self.get_or_map(number) else {
            self.give_back(number);
            return None;
        };
        Some((number, value))
    }

    /// Takes back a number that nobody has seen.
    pub(crate) fn give_back(&self, number: u32) {
        // If there is a spare one already, this one stays nobody's: two threads met in something new twice, before
        // anything else was new.
        let _ = self.spare.compare_exchange(0, number, Ordering::Release, Ordering::Relaxed);
    }

    /// The value of a number; `None` if it lies where nothing is mapped.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let (block, offset) = place(number)?;
        self.blocks[block].get()?.get(offset)
    }

    /// The highest number that was taken; one less than the first if none was.
    pub(crate) fn last(&self) -> u32 {
        self.next.load(Ordering::Relaxed).wrapping_sub(1)
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.blocks.iter().map(LazyBlock::mapped_bytes).sum()
    }

    fn take_number(&self) -> Option<u32> {
        if self.spare.load(Ordering::Relaxed) != 0 {
            let spare = self.spare.swap(0, Ordering::Acquire);
            if spare != 0 {
                return Some(spare);
            }
        }
        let more = |next: u32| (next != 0).then(|| next.wrapping_add(1));
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
    }

    fn get_or_map(&self, number: u32) -> Option<&T> {
        let (block, offset) = place(number)?;
        self.blocks[block].get_or_map()?.get(offset)
    }
}

/// In which block a value lies, and where in it; `None` for 0.
fn place(number: u32) -> Option<(usize, usize)> {
    let index = number.checked_sub(1)? as usize;
    Some(match (index / FIRST_LENGTH).checked_ilog2() {
        None => (0, index),
        Some(doublings) => (doublings as usize + 1, index - (FIRST_LENGTH << doublings)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn every_number_has_its_own_place() {
        let numbered = Numbered::<AtomicU64>::starting_with(1);
        assert_eq!(place(0), None);
        let mut expected = (0, 0);
        for number in 1..40_000 {
            assert_eq!(place(number), Some(expected));
            expected.1 += 1;
            if numbered.blocks[expected.0].length() == expected.1 {
                expected = (expected.0 + 1, 0);
            }
        }
        let (block, offset) = place(u32::MAX).unwrap();
        assert_eq!((block, offset + 2), (BLOCKS - 1, numbered.blocks[block].length()));
    }

    #[test]
    fn a_number_that_was_given_back_is_given_out_again() {
        let numbered = Numbered::<AtomicU64>::starting_with(2);
        assert_eq!(numbered.last(), 1);
        let numbers = || numbered.take().map(|(number, _)| number);
        assert_eq!((numbers(), numbers()), (Some(2), Some(3)));
        numbered.give_back(2);
        assert_eq!((numbers(), numbers(), numbered.last()), (Some(2), Some(4), 4));
    }

    #[test]
    fn the_last_number_is_followed_by_none() {
        let numbered = Numbered::<AtomicU64>::starting_with(u32::MAX);
        assert_eq!([0, 1, 2].map(|_| numbered.take_number()), [Some(u32::MAX), None, None]);
        assert_eq!(numbered.last(), u32::MAX);
    }
}
