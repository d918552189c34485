//! From a stack's hash to its id, for all threads at once.
//!
//! A [`Cascade`], so that nobody waits and nothing moves.
//!
//! A stack that came early, as those that come often do, is found in one or two cache lines, side by side; one
//! that came after a million others, in five times as many. A cache of each thread's own in front was measured:
//! it takes a third off the worst case, and adds a third to the usual one.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::StackId;

use crate::cascade::Cascade;
use crate::lazy_block::ZeroIsValid;
use crate::stack_hash::StackHash;

/// Two cache lines: with one, buckets overflow when the table is still half empty.
const SLOTS: usize = 8;
/// 1 MiB.
const FIRST_BUCKETS: usize = 1 << 13;
/// 2^31 slots in all.
const MORE_TABLES: usize = 15;

/// A hash and its id. Goes through three states, each final but for the next:
/// both words 0; `low` set, by whoever claimed the slot; `rest` set too, by whoever came first of those with
/// this `low`, which need not be the one who claimed it.
#[derive(Debug)]
#[repr(C)]
struct Slot {
    /// The low part of the hash; 0: free.
    low: AtomicU64,
    /// The high part of the hash, and below it the id; 0: not known yet.
    rest: AtomicU64,
}

#[derive(Debug)]
#[repr(C, align(128))]
struct Bucket([Slot; SLOTS]);

// SAFETY: numbers with any bits, aligned to less than a page.
unsafe impl ZeroIsValid for Bucket {}

#[derive(Debug)]
pub(crate) struct StackIndex {
    cascade: Cascade<Bucket, FIRST_BUCKETS, MORE_TABLES>,
}

impl StackIndex {
    pub(crate) const fn new() -> Self {
        Self { cascade: Cascade::new() }
    }

    /// The id of the stack with this hash.
    #[inline]
    pub(crate) fn find(&self, hash: StackHash) -> Option<StackId> {
        for bucket in self.cascade.mapped(hash.low) {
            for slot in &bucket.0 {
                // Acquire: what was written before the id was known, the stack's nodes, is seen by whoever
                // gets it.
                let (high, id) = parts(slot.rest.load(Ordering::Acquire));
                // Once `rest` is set, so is `low`.
                if high == hash.high && slot.low.load(Ordering::Relaxed) == hash.low && id.is_some() {
                    return id;
                }
            }
            if bucket.0[SLOTS - 1].low.load(Ordering::Relaxed) == 0 {
                return None;
            }
        }
        None
    }

    /// Makes `id` the id of the stack with this hash, unless another thread gave it one first. Returns
    /// the id that stays; `None` if there is no memory.
    pub(crate) fn add(&self, hash: StackHash, id: StackId) -> Option<StackId> {
        self.cascade.mapping(hash.low).flat_map(|bucket| &bucket.0).find_map(|slot| slot.settle(hash, id))
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.cascade.mapped_bytes()
    }
}

impl Slot {
    /// The id of `hash` in this slot, which is `id` if the slot was free; `None` if another hash has it.
    fn settle(&self, hash: StackHash, id: StackId) -> Option<StackId> {
        let mut low = self.low.load(Ordering::Relaxed);
        if low == 0 {
            let claim = self.low.compare_exchange(0, hash.low, Ordering::Relaxed, Ordering::Relaxed);
            low = claim.err().unwrap_or(hash.low);
        }
        if low != hash.low {
            return None;
        }
        let rest = u64::from(hash.high) << 32 | u64::from(id.get());
        // Release: the id's node, and `low`, are seen by whoever sees the id.
        match self.rest.compare_exchange(0, rest, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(id),
            Err(taken) => {
                let (high, id) = parts(taken);
                id.filter(|_| high == hash.high)
            }
        }
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the word is taken apart")]
fn parts(rest: u64) -> (u32, Option<StackId>) {
    ((rest >> 32) as u32, StackId::new(rest as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> StackId {
        StackId::new(number).unwrap()
    }

    /// Hashes that meet in bucket 5 of the first table, and part in the next.
    fn hash(number: u64) -> StackHash {
        StackHash { low: number << 20 | 5, high: 7 }
    }

    #[test]
    fn a_bucket_fits_in_two_cache_lines() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (128, 128));
    }

    #[test]
    fn what_does_not_fit_goes_to_the_next_table() {
        let index = StackIndex::new();
        let numbers = || 1..=20_u32;
        for number in numbers() {
            assert_eq!(index.find(hash(number.into())), None);
            assert_eq!(index.add(hash(number.into()), id(number)), Some(id(number)));
        }
        assert_eq!(index.mapped_bytes(), 2 << 20);
        assert!(numbers().all(|number| index.find(hash(number.into())) == Some(id(number))));
    }

    #[test]
    fn the_first_id_stays() {
        let index = StackIndex::new();
        assert_eq!(index.add(hash(1), id(10)), Some(id(10)));
        assert_eq!(index.add(hash(1), id(11)), Some(id(10)));
        assert_eq!(index.find(hash(1)), Some(id(10)));
    }

    #[test]
    fn hashes_that_differ_in_their_high_part_only_are_told_apart() {
        let index = StackIndex::new();
        let others: Vec<StackHash> = (0..12).map(|high| StackHash { high, ..hash(1) }).collect();
        for (number, hash) in (20..).zip(&others) {
            assert_eq!(index.find(*hash), None);
            assert_eq!(index.add(*hash, id(number)), Some(id(number)));
        }
        assert!((20..).zip(&others).all(|(number, hash)| index.find(*hash) == Some(id(number))));
    }

    #[test]
    fn a_slot_whose_claimer_was_stopped_is_taken_over() {
        let index = StackIndex::new();
        let claimed = &index.cascade.mapping(5).next().unwrap().0[0];
        claimed.low.store(hash(1).low, Ordering::Relaxed);
        assert_eq!(index.find(hash(1)), None);
        assert_eq!(index.find(StackHash { high: 0, ..hash(1) }), None);
        assert_eq!(index.add(hash(2), id(2)), Some(id(2)));
        assert_eq!(index.add(hash(1), id(3)), Some(id(3)));
        // The claimer goes on, and takes the id that is there.
        assert_eq!(claimed.settle(hash(1), id(1)), Some(id(3)));
        assert_eq!((index.find(hash(1)), index.find(hash(2))), (Some(id(3)), Some(id(2))));
    }
}
