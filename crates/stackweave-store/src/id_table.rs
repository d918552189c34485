//! A table of values by id.
//!
//! Ids are consecutive, and values are in blocks that are added and never move. The value of an id that was never
//! allocated is zero.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::lazy_block::{LazyBlock, ZeroIsValid};

const FIRST_LENGTH: usize = 1 << 12;
/// Enough blocks for all ids of 32 bits.
const BLOCKS: usize = 21;

#[derive(Debug)]
pub(crate) struct IdTable<T> {
    blocks: [LazyBlock<T>; BLOCKS],
    /// The next id that was never allocated; 0 when none is left.
    next: AtomicU32,
    /// Consecutive free ids: the first, and above it their number; 0: none.
    spare: AtomicU64,
}

impl<T: ZeroIsValid> IdTable<T> {
    /// Returns a table whose ids begin with `first`, which is not 0.
    pub(crate) const fn starting_with(first: u32) -> Self {
        Self { blocks: LazyBlock::doubling(FIRST_LENGTH), next: AtomicU32::new(first), spare: AtomicU64::new(0) }
    }

    /// Allocates an id, and returns it with its value, which may be the value that it had when it was freed;
    /// `None` if there is no memory, or no id left.
    pub(crate) fn allocate(&self) -> Option<(u32, &T)> {
        let number = self.allocate_run(1)?;
        Some((number, self.get(number)?))
    }

    /// Allocates `count` consecutive ids, and returns the first. Their values are mapped, and may be the values
    /// that they had when they were freed. `None` if there is no memory, or too few ids are left.
    pub(crate) fn allocate_run(&self, count: u32) -> Option<u32> {
        let first = self.allocate_ids(count)?;
        if (0..count).all(|place| self.get_or_map(first + place).is_some()) {
            return Some(first);
        }
        self.free_run(first, count);
        None
    }

    /// Frees an id that no other thread has seen.
    pub(crate) fn free(&self, number: u32) {
        self.free_run(number, 1);
    }

    /// Frees consecutive ids that no other thread has seen.
    pub(crate) fn free_run(&self, first: u32, count: u32) {
        // If there are spare ids already, these are never used again: that happens if threads add the same new
        // value twice before anything else is added.
        let spare = u64::from(count) << 32 | u64::from(first);
        let _ = self.spare.compare_exchange(0, spare, Ordering::Release, Ordering::Relaxed);
    }

    /// Returns the value of an id; `None` if its block is not mapped.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let (block, offset) = place(number)?;
        self.blocks[block].get()?.get(offset)
    }

    /// Returns the highest id that was allocated; one less than the first if none was.
    pub(crate) fn last(&self) -> u32 {
        self.next.load(Ordering::Relaxed).wrapping_sub(1)
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.blocks.iter().map(LazyBlock::mapped_bytes).sum()
    }

    fn allocate_ids(&self, count: u32) -> Option<u32> {
        if let Some(first) = self.take_spare(count) {
            return Some(first);
        }
        // After the last id comes 0.
        let more = |next: u32| (next != 0 && count - 1 <= u32::MAX - next).then(|| next.wrapping_add(count));
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
    }

    #[expect(clippy::cast_possible_truncation, reason = "the word is split")]
    fn take_spare(&self, count: u32) -> Option<u32> {
        if self.spare.load(Ordering::Relaxed) >> 32 < count.into() {
            return None;
        }
        let spare = self.spare.swap(0, Ordering::Acquire);
        let (first, spares) = (spare as u32, (spare >> 32) as u32);
        let rest = spares.checked_sub(count);
        match rest {
            // Others allocated them meanwhile, and freed fewer.
            None if spares > 0 => self.free_run(first, spares),
            Some(rest) if rest > 0 => self.free_run(first + count, rest),
            _ => {}
        }
        rest.map(|_| first)
    }

    fn get_or_map(&self, number: u32) -> Option<&T> {
        let (block, offset) = place(number)?;
        self.blocks[block].get_or_map()?.get(offset)
    }
}

/// Returns the block of a value, and its index there; `None` for 0.
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
    fn every_id_has_its_own_value() {
        let table = IdTable::<AtomicU64>::starting_with(1);
        assert_eq!(place(0), None);
        let mut expected = (0, 0);
        for number in 1..40_000 {
            assert_eq!(place(number), Some(expected));
            expected.1 += 1;
            if table.blocks[expected.0].length() == expected.1 {
                expected = (expected.0 + 1, 0);
            }
        }
        let (block, offset) = place(u32::MAX).unwrap();
        assert_eq!((block, offset + 2), (BLOCKS - 1, table.blocks[block].length()));
    }

    #[test]
    fn a_freed_id_is_allocated_again() {
        let table = IdTable::<AtomicU64>::starting_with(2);
        assert_eq!(table.last(), 1);
        let numbers = || table.allocate().map(|(number, _)| number);
        assert_eq!((numbers(), numbers()), (Some(2), Some(3)));
        table.free(2);
        assert_eq!((numbers(), numbers(), table.last()), (Some(2), Some(4), 4));
    }

    #[test]
    fn consecutive_freed_ids_are_allocated_again_in_parts() {
        let table = IdTable::<AtomicU64>::starting_with(2);
        assert_eq!(table.allocate_run(5), Some(2));
        table.free_run(2, 5);
        assert_eq!(table.allocate_run(6), Some(7), "there are fewer spare ids");
        assert_eq!([2, 2, 2, 1].map(|count| table.allocate_run(count)), [Some(2), Some(4), Some(13), Some(6)]);
        assert_eq!(table.last(), 14);
    }

    #[test]
    fn allocation_fails_after_the_last_id() {
        let table = IdTable::<AtomicU64>::starting_with(u32::MAX);
        assert_eq!(table.allocate_ids(2), None);
        assert_eq!([0, 1, 2].map(|_| table.allocate_ids(1)), [Some(u32::MAX), None, None]);
        assert_eq!(table.last(), u32::MAX);
    }
}
