//! Values that are known by a number.
//!
//! Numbers follow each other, and values lie in blocks that grow and never move. What a value says of a number that
//! was never given is zero.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::lazy_block::{LazyBlock, ZeroIsValid};

const FIRST_LENGTH: usize = 1 << 12;
/// Enough for all numbers of 32 bits.
const BLOCKS: usize = 21;

#[derive(Debug)]
pub(crate) struct Numbered<T> {
    blocks: [LazyBlock<T>; BLOCKS],
    /// The next number that nobody has had; 0 when there are no more.
    next: AtomicU32,
    /// Numbers in a row that were taken and are not needed: the first, and above it how many; 0: none.
    spare: AtomicU64,
}

impl<T: ZeroIsValid> Numbered<T> {
    /// Numbers begin with `first`, which is not 0.
    pub(crate) const fn starting_with(first: u32) -> Self {
        Self { blocks: LazyBlock::doubling(FIRST_LENGTH), next: AtomicU32::new(first), spare: AtomicU64::new(0) }
    }

    /// A number that nobody has, and its value, which may be what was there when the number was given back; `None`
    /// if there is no memory, or no number left.
    pub(crate) fn take(&self) -> Option<(u32, &T)> {
        let number = self.take_run(1)?;
        Some((number, self.get(number)?))
    }

    /// Returns the first of `count` numbers in a row that nobody has. Their values are mapped, and may be what was there
    /// when they were given back. `None` if there is no memory, or there are not so many numbers left.
    pub(crate) fn take_run(&self, count: u32) -> Option<u32> {
        let first = self.take_numbers(count)?;
        if (0..count).all(|place| self.get_or_map(first + place).is_some()) {
            return Some(first);
        }
        self.give_back_run(first, count);
        None
    }

    /// Takes back a number that nobody has seen.
    pub(crate) fn give_back(&self, number: u32) {
        self.give_back_run(number, 1);
    }

    /// Takes back numbers in a row that nobody has seen.
    pub(crate) fn give_back_run(&self, first: u32, count: u32) {
        // If there are spare ones already, these stay nobody's: two threads met in something new twice, before anything
        // else was new.
        let spare = u64::from(count) << 32 | u64::from(first);
        let _ = self.spare.compare_exchange(0, spare, Ordering::Release, Ordering::Relaxed);
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

    fn take_numbers(&self, count: u32) -> Option<u32> {
        if let Some(first) = self.take_spare(count) {
            return Some(first);
        }
        // After the last number comes 0.
        let more = |next: u32| (next != 0 && count - 1 <= u32::MAX - next).then(|| next.wrapping_add(count));
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
    }

    #[expect(clippy::cast_possible_truncation, reason = "the word is taken apart")]
    fn take_spare(&self, count: u32) -> Option<u32> {
        if self.spare.load(Ordering::Relaxed) >> 32 < count.into() {
            return None;
        }
        let spare = self.spare.swap(0, Ordering::Acquire);
        let (first, spares) = (spare as u32, (spare >> 32) as u32);
        let rest = spares.checked_sub(count);
        match rest {
            // Others took them meanwhile, and gave back fewer.
            None if spares > 0 => self.give_back_run(first, spares),
            Some(rest) if rest > 0 => self.give_back_run(first + count, rest),
            _ => {}
        }
        rest.map(|_| first)
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
    fn numbers_in_a_row_are_given_out_again_in_parts() {
        let numbered = Numbered::<AtomicU64>::starting_with(2);
        assert_eq!(numbered.take_run(5), Some(2));
        numbered.give_back_run(2, 5);
        assert_eq!(numbered.take_run(6), Some(7), "there are not so many spare ones");
        assert_eq!([2, 2, 2, 1].map(|count| numbered.take_run(count)), [Some(2), Some(4), Some(13), Some(6)]);
        assert_eq!(numbered.last(), 14);
    }

    #[test]
    fn the_last_number_is_followed_by_none() {
        let numbered = Numbered::<AtomicU64>::starting_with(u32::MAX);
        assert_eq!(numbered.take_numbers(2), None);
        assert_eq!([0, 1, 2].map(|_| numbered.take_numbers(1)), [Some(u32::MAX), None, None]);
        assert_eq!(numbered.last(), u32::MAX);
    }
}
