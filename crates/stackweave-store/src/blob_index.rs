//! From a blob's hash to its id, shared by all threads.
//!
//! A [`GrowingTable`] whose slots are one word each: part of the hash, and the id. So a slot is either free or
//! complete. The caller decides by the bytes whether it is the right blob.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::BlobId;

use crate::growing_table::GrowingTable;
use crate::lazy_block::ZeroIsValid;

/// A cache line.
const SLOTS: usize = 8;
/// 64 KiB.
const FIRST_BUCKETS: usize = 1 << 10;
/// 2^29 slots in total.
const MORE_TABLES: usize = 16;

/// Each slot has the high half of the hash, and below it the id; 0: free.
#[derive(Debug)]
#[repr(C, align(64))]
struct Bucket([AtomicU64; SLOTS]);

// SAFETY: any bits are valid numbers, aligned to less than a page.
unsafe impl ZeroIsValid for Bucket {}

#[derive(Debug)]
pub(crate) struct BlobIndex {
    table: GrowingTable<Bucket, FIRST_BUCKETS, MORE_TABLES>,
}

impl BlobIndex {
    pub(crate) const fn new() -> Self {
        Self { table: GrowingTable::new() }
    }

    /// Returns the id of the blob with this hash for which `is_match` returns true.
    pub(crate) fn find(&self, hash: u64, is_match: impl Fn(BlobId) -> bool) -> Option<BlobId> {
        for slot in self.table.mapped(hash).flat_map(|bucket| &bucket.0) {
            // Acquire: a thread that gets the id sees what was written before, the blob's bytes.
            let word = slot.load(Ordering::Acquire);
            if word == 0 {
                return None;
            }
            if let Some(id) = id_in(word, hash).filter(|id| is_match(*id)) {
                return Some(id);
            }
        }
        None
    }

    /// Returns the id of the blob as [`BlobIndex::find`] does. If there is none, stores the id that `new_id`
    /// returns, unless another thread was first. `None` if there is no memory, or `new_id` returns none.
    ///
    /// `new_id` is called only when there is a free slot, and once for each slot that was free and is no longer:
    /// it must return the same id each time.
    pub(crate) fn find_or_add(
        &self,
        hash: u64,
        is_match: impl Fn(BlobId) -> bool,
        mut new_id: impl FnMut() -> Option<BlobId>,
    ) -> Option<BlobId> {
        for slot in self.table.mapping(hash).flat_map(|bucket| &bucket.0) {
            let mut word = slot.load(Ordering::Acquire);
            if word == 0 {
                let id = new_id()?;
                // Release: a thread that sees the id sees the blob's bytes.
                match slot.compare_exchange(0, word_of(id, hash), Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Some(id),
                    Err(existing) => word = existing,
                }
            }
            if let Some(id) = id_in(word, hash).filter(|id| is_match(*id)) {
                return Some(id);
            }
        }
        None
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.table.mapped_bytes()
    }
}

const HASH_MASK: u64 = !0 << 32;

fn word_of(id: BlobId, hash: u64) -> u64 {
    hash & HASH_MASK | u64::from(id.get())
}

/// Returns the id in a slot, if it may belong to this hash.
#[expect(clippy::cast_possible_truncation, reason = "the word is split")]
fn id_in(word: u64, hash: u64) -> Option<BlobId> {
    BlobId::new(word as u32).filter(|_| (word ^ hash) & HASH_MASK == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> BlobId {
        BlobId::new(number).unwrap()
    }

    #[test]
    fn a_bucket_is_a_cache_line() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
    }

    #[test]
    fn the_caller_distinguishes_blobs_with_one_hash() {
        let index = BlobIndex::new();
        for number in 1..=30 {
            assert_eq!(index.find(5, |other| other == id(number)), None);
            assert_eq!(index.find_or_add(5, |other| other == id(number), || Some(id(number))), Some(id(number)));
        }
        assert_eq!(index.mapped_bytes(), 8 * 64 * FIRST_BUCKETS, "four buckets of eight");
        assert!((1..=30).all(|number| index.find(5, |other| other == id(number)) == Some(id(number))));
        assert_eq!(index.find(5 | 1 << 40, |_| true), None, "the high half of the hash differs");
    }

    #[test]
    fn the_first_id_is_kept() {
        let index = BlobIndex::new();
        assert_eq!(index.find_or_add(7, |_| true, || Some(id(10))), Some(id(10)));
        assert_eq!(index.find_or_add(7, |_| true, || unreachable!()), Some(id(10)));
        assert_eq!(index.find_or_add(8, |_| true, || None), None);
        assert_eq!(index.find(8, |_| true), None);
    }

    #[test]
    fn the_second_thread_at_a_free_slot_gets_the_existing_id() {
        let index = BlobIndex::new();
        // Another thread is faster, between the check of the slot and the claim.
        let new_id = || index.find_or_add(7, |_| true, || Some(id(1))).and(Some(id(2)));
        assert_eq!(index.find_or_add(7, |_| true, new_id), Some(id(1)));
        assert_eq!(index.find(7, |other| other == id(2)), None);
    }

    #[test]
    fn a_thread_that_loses_a_slot_to_another_blob_uses_the_next() {
        let index = BlobIndex::new();
        let new_id = || index.find_or_add(7, |other| other == id(1), || Some(id(1))).and(Some(id(2)));
        assert_eq!(index.find_or_add(7, |other| other == id(2), new_id), Some(id(2)));
        assert!([1, 2].iter().all(|number| index.find(7, |other| other == id(*number)) == Some(id(*number))));
    }
}
