//! Byte strings as integers: equal ones have equal ids.
//!
//! Nothing here waits. A thread that is stopped in the middle of adding a blob, be it by a signal handler that adds
//! the same one, or in a forked child for good, has changed nothing that others need.
//!
//! Hot file: no allocation, no lock, async-signal-safe; no system call but for the memory of new blobs.

use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::BlobId;

use crate::blob_bytes::{BlobBytes, MAX_LENGTH, Place};
use crate::blob_hash::hash;
use crate::blob_index::BlobIndex;
use crate::id_table::IdTable;

/// All byte strings seen so far. Made to be a `static`, and shared by all threads.
///
/// A blob keeps its bytes, 8 for its place and 8 in the index. With the room that the index leaves free that makes 20
/// to 30 more than its length, once there are some thousands. Threads that meet in a new one leave the bytes of all but
/// one behind: who asks for an id that was not given may be looking at them, so they are not written to again.
#[derive(Debug)]
pub struct BlobTable {
    index: BlobIndex,
    /// For each id the bits of its [`Place`].
    places: IdTable<AtomicU64>,
    bytes: BlobBytes,
    refused: AtomicU64,
}

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobTableStats {
    /// Blobs. A few may count twice: threads that met in a new one.
    pub blobs: u32,
    /// How many times a blob got no id, for want of memory or of ids, or because it is too long.
    pub refused: u64,
    /// Bytes of all blobs, with what is left empty at the ends of blocks.
    pub used_bytes: u64,
    /// Bytes of address space, for the blobs, their places and the index.
    pub mapped_bytes: usize,
}

impl BlobTable {
    /// The most bytes that a blob may have: 256 MiB less one.
    pub const MAX_LENGTH: u64 = MAX_LENGTH;

    /// A table without blobs, which takes no memory yet.
    pub const fn new() -> Self {
        Self {
            index: BlobIndex::new(),
            places: IdTable::starting_with(1),
            bytes: BlobBytes::new(),
            refused: AtomicU64::new(0),
        }
    }

    /// The id of the blob that these parts make, one after the other: how they are cut makes no difference.
    ///
    /// `None` if it is new and the kernel gives no memory for it, if it is longer than `MAX_LENGTH`, or if no id is
    /// left; that is counted.
    pub fn intern(&self, parts: &[&[u8]]) -> Option<BlobId> {
        let hash = hash(parts);
        match self.index.find(hash, |id| self.is(id, parts)) {
            Some(id) => Some(id),
            None => self.intern_new(hash, parts),
        }
    }

    /// Returns the id of the blob that these parts make, if it has one.
    pub fn find(&self, parts: &[&[u8]]) -> Option<BlobId> {
        self.index.find(hash(parts), |id| self.is(id, parts))
    }

    /// Returns the bytes of all blobs, with what is left empty at the ends of blocks.
    pub fn used_bytes(&self) -> u64 {
        self.bytes.used()
    }

    /// The bytes of a blob. `None` if this table has not given out `id`.
    pub fn get(&self, id: BlobId) -> Option<&[u8]> {
        // Acquire: the bytes were written before their place.
        let place = Place::from_bits(self.places.get(id.get())?.load(Ordering::Acquire))?;
        // SAFETY: `add` stores what `write` gave it, with Release, and gives back no place after that.
        unsafe { self.bytes.get(place) }
    }

    /// How many blobs there are. A few may count twice: threads that met in a new one.
    pub fn len(&self) -> u32 {
        self.places.last()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it holds.
    pub fn stats(&self) -> BlobTableStats {
        BlobTableStats {
            blobs: self.len(),
            refused: self.refused.load(Ordering::Relaxed),
            used_bytes: self.used_bytes(),
            mapped_bytes: self.index.mapped_bytes() + self.places.mapped_bytes() + self.bytes.mapped_bytes(),
        }
    }

    #[cold]
    #[inline(never)]
    fn intern_new(&self, hash: u64, parts: &[&[u8]]) -> Option<BlobId> {
        let mut mine = None;
        let add_once = || {
            mine = mine.or_else(|| self.add(parts));
            mine
        };
        let id = self.index.find_or_add(hash, |id| self.is(id, parts), add_once);
        if let Some(mine) = mine.filter(|mine| id != Some(*mine)) {
            self.give_back(mine);
        }
        if id.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        id
    }

    /// Gives these parts an id that is not in the index yet.
    fn add(&self, parts: &[&[u8]]) -> Option<BlobId> {
        let bytes = self.bytes.write(parts)?;
        let Some((number, place)) = self.places.allocate() else {
            self.bytes.give_back(bytes);
            return None;
        };
        // Release: the bytes are seen by whoever sees their place.
        place.store(bytes.to_bits(), Ordering::Release);
        BlobId::new(number)
    }

    /// Takes back an id that nobody has been given. Its bytes are lost: see [`BlobTable`].
    fn give_back(&self, id: BlobId) {
        if let Some(place) = self.places.get(id.get()) {
            place.store(0, Ordering::Relaxed);
        }
        self.places.free(id.get());
    }

    /// Whether a blob is what these parts make.
    fn is(&self, id: BlobId, parts: &[&[u8]]) -> bool {
        let Some(mut rest) = self.get(id) else { return false };
        for part in parts {
            match rest.strip_prefix(*part) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        rest.is_empty()
    }
}

impl Default for BlobTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_blobs_have_equal_ids_wherever_they_are_cut() {
        let table = BlobTable::new();
        let cuts: [&[&[u8]]; 5] = [&[b"ab", b"c"], &[b"a", b"bc"], &[b"abc"], &[b"", b"abc", b""], &[b"a", b"b", b"c"]];
        let ids = cuts.map(|parts| table.intern(parts).unwrap());
        assert!(ids.iter().all(|id| *id == ids[0]));
        assert_eq!(table.get(ids[0]), Some(&b"abc"[..]));
        let other = table.intern(&[b"ab"]).unwrap();
        assert_ne!(other, ids[0]);
        assert_eq!((table.get(other), table.len()), (Some(&b"ab"[..]), 2));
    }

    #[test]
    fn the_empty_blob_is_a_blob() {
        let table = BlobTable::new();
        let id = table.intern(&[]).unwrap();
        assert_eq!((table.intern(&[b"", b""]), table.get(id)), (Some(id), Some(&b""[..])));
        assert_ne!(table.intern(&[b"\0"]), Some(id));
    }

    #[test]
    fn ids_are_dense() {
        let table = BlobTable::new();
        let ids: Vec<u32> =
            [b"a", b"b", b"a", b"c"].iter().filter_map(|blob| table.intern(&[*blob])).map(BlobId::get).collect();
        assert_eq!(ids, [1, 2, 1, 3]);
    }

    #[test]
    fn an_id_that_was_never_given_has_no_bytes() {
        let table = BlobTable::new();
        let ids = || [1, 2, 3, 5000, u32::MAX].map(|number| BlobId::new(number).unwrap());
        assert!(ids().iter().all(|id| table.get(*id).is_none()));
        table.intern(&[b"a"]);
        assert!(ids()[1..].iter().all(|id| table.get(*id).is_none()));
    }

    #[test]
    fn what_is_too_long_is_refused_and_counted() {
        let table = BlobTable::new();
        // Zeros that nobody has touched: the kernel's one page of them, many times.
        let long = vec![0_u8; 1 << 28];
        assert_eq!(table.intern(&[&long]), None);
        assert_eq!((table.stats().refused, table.len(), table.stats().used_bytes), (1, 0, 0));
        let id = table.intern(&[b"short"]).unwrap();
        assert_eq!((id.get(), table.stats().refused), (1, 1));
    }

    #[test]
    fn an_id_that_was_given_back_is_given_out_again_and_its_bytes_are_not_written_to() {
        let table = BlobTable::new();
        let lost = table.add(&[b"lost"]).unwrap();
        let bytes = table.get(lost).unwrap();
        table.give_back(lost);
        assert_eq!((table.get(lost), table.intern(&[b"kept"])), (None, Some(lost)));
        assert_eq!((table.get(lost), bytes), (Some(&b"kept"[..]), &b"lost"[..]));
    }

    #[test]
    fn a_table_takes_no_memory_before_its_first_blob() {
        static TABLE: BlobTable = BlobTable::new();
        assert_eq!(TABLE.stats(), BlobTableStats::default());
        assert!(TABLE.is_empty() && TABLE.intern(&[b"a"]).is_some() && !TABLE.is_empty());
    }
}
