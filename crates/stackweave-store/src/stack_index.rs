//! From a stack's hash to its id, shared by all threads.
//!
//! A [`GrowingTable`], so that no thread blocks and no entry moves.
//!
//! A stack that was added early, as frequent ones are, is found in one or two adjacent cache lines; one that was
//! added after a million others, in five times as many. A per-thread cache in front of the index was measured: it
//! saves a third in the worst case, and adds a third to the usual case.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use stackweave_core::StackId;

use crate::growing_table::GrowingTable;
use crate::lazy_block::ZeroIsValid;
use crate::stack_hash::StackHash;

/// Two cache lines: with one, buckets overflow while the table is still half empty.
const SLOTS: usize = 10;
/// 1 MiB.
const FIRST_BUCKETS: usize = 1 << 13;
/// 2^31 slots in total.
const MORE_TABLES: usize = 15;

/// Hashes and their ids. A slot is a hash and the id at the same index. It has three states: both are 0; the hash
/// is set, by the thread that claimed the slot; the id is also set, by the first thread with this hash, which need
/// not be the one that claimed the slot.
#[derive(Debug)]
#[repr(C, align(128))]
struct Bucket {
    /// The stored part of the hash; 0: free.
    hashes: [AtomicU64; SLOTS],
    /// 0: not known yet.
    ids: [AtomicU32; SLOTS],
}

// SAFETY: any bits are valid numbers, aligned to less than a page.
unsafe impl ZeroIsValid for Bucket {}

#[derive(Debug)]
pub(crate) struct StackIndex {
    table: GrowingTable<Bucket, FIRST_BUCKETS, MORE_TABLES>,
}

impl StackIndex {
    pub(crate) const fn new() -> Self {
        Self { table: GrowingTable::new() }
    }

    /// Returns the id of the stack with this hash.
    #[inline]
    pub(crate) fn find(&self, hash: StackHash) -> Option<StackId> {
        for bucket in self.table.mapped(hash.bucket) {
            for (kept, id) in bucket.hashes.iter().zip(&bucket.ids) {
                if kept.load(Ordering::Relaxed) == hash.kept {
                    // Acquire: a thread that gets the id sees what was written before, the stack's nodes.
                    return StackId::new(id.load(Ordering::Acquire));
                }
            }
            if bucket.hashes[SLOTS - 1].load(Ordering::Relaxed) == 0 {
                return None;
            }
        }
        None
    }

    /// Stores `id` as the id of the stack with this hash, unless another thread was first. Returns the stored id;
    /// `None` if there is no memory.
    pub(crate) fn add(&self, hash: StackHash, id: StackId) -> Option<StackId> {
        self.table.mapping(hash.bucket).find_map(|bucket| bucket.find_or_add(hash.kept, id))
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.table.mapped_bytes()
    }
}

impl Bucket {
    /// Returns the id of a hash in this bucket, and stores `id` if there was none and a slot was free; `None` if
    /// other hashes have all slots.
    fn find_or_add(&self, hash: u64, id: StackId) -> Option<StackId> {
        let own_slot = self.hashes.iter().position(|kept| claim(kept, hash))?;
        // Release: a thread that sees the id sees its node.
        match self.ids[own_slot].compare_exchange(0, id.get(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(id),
            Err(existing) => StackId::new(existing),
        }
    }
}

/// Claims a slot for a hash if it is free. Returns whether the slot belongs to the hash, since now or before.
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

    /// Hashes that share bucket 5 of the first table, and are separated in the next.
    fn hash(number: u64) -> StackHash {
        StackHash { kept: number, bucket: number << 20 | 5 }
    }

    #[test]
    fn a_bucket_fits_in_two_cache_lines() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (128, 128));
    }

    #[test]
    fn entries_that_do_not_fit_go_to_the_next_table() {
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
    fn the_first_id_is_kept() {
        let index = StackIndex::new();
        assert_eq!(index.add(hash(1), id(10)), Some(id(10)));
        assert_eq!(index.add(hash(1), id(11)), Some(id(10)));
        assert_eq!(index.find(hash(1)), Some(id(10)));
    }

    #[test]
    fn hashes_that_differ_only_in_their_bucket_are_distinguished() {
        let index = StackIndex::new();
        let others: Vec<StackHash> = (0..12).map(|bucket| StackHash { bucket, ..hash(1) }).collect();
        for (number, hash) in (20..).zip(&others) {
            assert_eq!(index.find(*hash), None);
            assert_eq!(index.add(*hash, id(number)), Some(id(number)));
        }
        assert!((20..).zip(&others).all(|(number, hash)| index.find(*hash) == Some(id(number))));
    }

    #[test]
    fn a_slot_of_a_stopped_claimer_is_used() {
        let index = StackIndex::new();
        let bucket = index.table.mapping(5).next().unwrap();
        bucket.hashes[0].store(hash(1).kept, Ordering::Relaxed);
        assert_eq!(index.find(hash(1)), None);
        assert_eq!(index.add(hash(2), id(2)), Some(id(2)));
        assert_eq!(index.add(hash(1), id(3)), Some(id(3)));
        // The claimer continues, and uses the existing id.
        assert_eq!(bucket.find_or_add(hash(1).kept, id(1)), Some(id(3)));
        assert_eq!((index.find(hash(1)), index.find(hash(2))), (Some(id(3)), Some(id(2))));
    }
}
