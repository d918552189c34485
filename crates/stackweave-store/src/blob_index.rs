//! From a blob's hash to its id, for all threads at once.
//!
//! A [`Cascade`] whose slots are one word each: part of the hash, and the id. So a slot is free, or says all it will
//! ever say. Whether the blob is the one that is looked for, the caller tells, by its bytes.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::BlobId;

use crate::cascade::Cascade;
use crate::lazy_block::ZeroIsValid;

/// A cache line.
const SLOTS: usize = 8;
/// 64 KiB.
const FIRST_BUCKETS: usize = 1 << 10;
/// 2^29 slots in all.
const MORE_TABLES: usize = 16;

/// Each slot: the high half of the hash, and below it the id; 0: free.
#[derive(Debug)]
#[repr(C, align(64))]
struct Bucket([AtomicU64; SLOTS]);

// SAFETY: numbers with any bits, aligned to less than a page.
unsafe impl ZeroIsValid for Bucket {}

#[derive(Debug)]
pub(crate) struct BlobIndex {
    cascade: Cascade<Bucket, FIRST_BUCKETS, MORE_TABLES>,
}

impl BlobIndex {
    pub(crate) const fn new() -> Self {
        Self { cascade: Cascade::new() }
    }

    /// The id of the blob with this hash that `is_it`.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(BlobId) -> bool) -> Option<BlobId> {
        for slot in self.cascade.mapped(hash).flat_map(|bucket| &bucket.0) {
            // Acquire: what was written before the id was known, the blob's bytes, is seen by whoever gets it.
            let word = slot.load(Ordering::Acquire);
            if word == 0 {
                return None;
            }
            if let Some(id) = id_in(word, hash).filter(|id| is_it(*id)) {
                return Some(id);
            }
        }
        None
    }

    /// The same; if there is none, it is now the one that `mine` gives, unless another thread was first. `None` if
    /// there is no memory, or `mine` gives none.
    ///
    /// `mine` is asked only where there is a free slot, and once for each that was free and is not any more: it must
    /// give the same id each time.
    pub(crate) fn find_or_add(
        &self,
        hash: u64,
        is_it: impl Fn(BlobId) -> bool,
        mut mine: impl FnMut() -> Option<BlobId>,
    ) -> Option<BlobId> {
        for slot in self.cascade.mapping(hash).flat_map(|bucket| &bucket.0) {
            let mut word = slot.load(Ordering::Acquire);
            if word == 0 {
                let id = mine()?;
                // Release: the blob's bytes are seen by whoever sees the id.
                match slot.compare_exchange(0, word_of(id, hash), Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Some(id),
                    Err(taken) => word = taken,
                }
            }
            if let Some(id) = id_in(word, hash).filter(|id| is_it(*id)) {
                return Some(id);
            }
        }
        None
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.cascade.mapped_bytes()
    }
}

const HASH_MASK: u64 = !0 << 32;

fn word_of(id: BlobId, hash: u64) -> u64 {
    hash & HASH_MASK | u64::from(id.get())
}

/// The id in a slot, if it may be of this hash.
#[expect(clippy::cast_possible_truncation, reason = "the word is taken apart")]
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
    fn blobs_of_one_hash_are_told_apart_by_who_asks() {
        let index = BlobIndex::new();
        for number in 1..=30 {
            assert_eq!(index.find(5, |other| other == id(number)), None);
            assert_eq!(index.find_or_add(5, |other| other == id(number), || Some(id(number))), Some(id(number)));
        }
        assert_eq!(index.mapped_bytes(), 8 * 64 * FIRST_BUCKETS, "four buckets of eight");
        assert!((1..=30).all(|number| index.find(5, |other| other == id(number)) == Some(id(number))));
        assert_eq!(index.find(5 | 1 << 40, |_| true), None, "the high half of the hash is another");
    }

    #[test]
    fn the_first_id_stays() {
        let index = BlobIndex::new();
        assert_eq!(index.find_or_add(7, |_| true, || Some(id(10))), Some(id(10)));
        assert_eq!(index.find_or_add(7, |_| true, || unreachable!()), Some(id(10)));
        assert_eq!(index.find_or_add(8, |_| true, || None), None);
        assert_eq!(index.find(8, |_| true), None);
    }

    #[test]
    fn who_comes_second_to_a_free_slot_takes_the_id_that_is_there() {
        let index = BlobIndex::new();
        // Another thread is faster, between the look at the slot and the claim.
        let mine = || index.find_or_add(7, |_| true, || Some(id(1))).and(Some(id(2)));
        assert_eq!(index.find_or_add(7, |_| true, mine), Some(id(1)));
        assert_eq!(index.find(7, |other| other == id(2)), None);
    }

    #[test]
    fn who_loses_a_slot_to_another_blob_takes_the_next() {
        let index = BlobIndex::new();
        let mine = || index.find_or_add(7, |other| other == id(1), || Some(id(1))).and(Some(id(2)));
        assert_eq!(index.find_or_add(7, |other| other == id(2), mine), Some(id(2)));
        assert!([1, 2].iter().all(|number| index.find(7, |other| other == id(*number)) == Some(id(*number))));
    }
}
