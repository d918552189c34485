//! From a stack's hash to its id, for all threads at once.
//!
//! A [`Cascade`], so that nobody waits and nothing moves.
//!
//! A stack that came early, as those that come often do, is found in one or two cache lines, side by side; one
//! that came after a million others, in five times as many. A cache of each thread's own in front was measured:
//! it takes a third off the worst case, and adds a third to the usual one.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use stackweave_core::StackId;

use crate::cascade::Cascade;
use crate::lazy_block::ZeroIsValid;
use crate::stack_hash::StackHash;

/// Two cache lines: with one, buckets overflow when the table is still half empty.
const SLOTS: usize = 10;
/// 1 MiB.
const FIRST_BUCKETS: usize = 1 << 13;
/// 2^31 slots in all.
const MORE_TABLES: usize = 15;

/// Hashes and their ids. A slot is a hash and the id at the same place. It goes through three states, each final but for
/// the next: both 0; the hash set, by whoever claimed the slot; the id set too, by whoever came first of those with this
/// hash, which need not be the one who claimed it.
#[derive(Debug)]
#[repr(C, align(128))]
struct Bucket {
    /// What is kept of the hash; 0: free.
    hashes: [AtomicU64; SLOTS],
    /// 0: not known yet.
    ids: [AtomicU32; SLOTS],
}

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
        for bucket in self.cascade.mapped(hash.bucket) {
            for (kept, id) in bucket.hashes.iter().zip(&bucket.ids) {
                if kept.load(Ordering::Relaxed) == hash.kept {
                    // Acquire: what was written before the id was known, the stack's nodes, is seen by whoever
                    // gets it.
                    return StackId::new(id.load(Ordering::Acquire));
                }
            }
            if bucket.hashes[SLOTS - 1].load(Ordering::Relaxed) == 0 {
                return None;
            }
        }
        None
    }

    /// Makes `id` the id of the stack with this hash, unless another thread gave it one first. Returns
    /// the id that stays; `None` if there is no memory.
    pub(crate) fn add(&self, hash: StackHash, id: StackId) -> Option<StackId> {
        self.cascade.mapping(hash.bucket).find_map(|bucket| bucket.settle(hash.kept, id))
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.cascade.mapped_bytes()
    }
}

impl Bucket {
    /// The id of a hash in this bucket, which is `id` if there was room and none before; `None` if others have all slots.
    fn settle(&self, hash: u64, id: StackId) -> Option<StackId> {
        let mine = self.hashes.iter().position(|kept| claim(kept, hash))?;
        // Release: the id's node is seen by whoever sees the id.
        match self.ids[mine].compare_exchange(0, id.get(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(id),
            Err(taken) => StackId::new(taken),
        }
    }
}

/// Takes a place for a hash if it is free. Returns whether the hash has it, be it by now or before.
fn claim(kept: &AtomicU64, hash: u64) -> bool {
    match kept.load(Ordering::Relaxed) {
        0 => kept
            .compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed)
            .map_or_else(|other| other == hash, |_| true),
        other => other == hash,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> StackId {
        StackId::new(number).unwrap()
    }

    /// Hashes that meet in bucket 5 of the first table, and part in the next.
    fn hash(number: u64) -> StackHash {
        StackHash { kept: number, bucket: number << 20 | 5 }
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
    fn hashes_that_differ_in_their_bucket_only_are_told_apart() {
        let index = StackIndex::new();
        let others: Vec<StackHash> = (0..12).map(|bucket| StackHash { bucket, ..hash(1) }).collect();
        for (number, hash) in (20..).zip(&others) {
            assert_eq!(index.find(*hash), None);
            assert_eq!(index.add(*hash, id(number)), Some(id(number)));
        }
        assert!((20..).zip(&others).all(|(number, hash)| index.find(*hash) == Some(id(number))));
    }

    #[test]
    fn a_slot_whose_claimer_was_stopped_is_taken_over() {
        let index = StackIndex::new();
        let bucket = index.cascade.mapping(5).next().unwrap();
        bucket.hashes[0].store(hash(1).kept, Ordering::Relaxed);
        assert_eq!(index.find(hash(1)), None);
        assert_eq!(index.add(hash(2), id(2)), Some(id(2)));
        assert_eq!(index.add(hash(1), id(3)), Some(id(3)));
        // The claimer goes on, and takes the id that is there.
        assert_eq!(bucket.settle(hash(1).kept, id(1)), Some(id(3)));
        assert_eq!((index.find(hash(1)), index.find(hash(2))), (Some(id(3)), Some(id(2))));
    }
}
