//! Byte strings as integers: equal byte strings have equal ids.
//!
//! Nothing here blocks. A thread that is stopped in the middle of adding a blob, by a signal handler that adds the
//! same one, or forever in a forked child, has changed nothing that other threads need.
//!
//! Hot file: no allocation, no lock, async-signal-safe; no system call except for the memory of new blobs.

use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::BlobId;

use crate::blob_bytes::{BlobBytes, BlobSpan, MAX_LENGTH};
use crate::blob_hash::hash;
use crate::blob_index::BlobIndex;
use crate::id_table::IdTable;

/// All byte strings that were interned, for a `static` that all threads share.
///
/// A blob needs its bytes, 8 for its span and 8 in the index. With the free slots of the index, that is 20 to 30
/// bytes more than its length, once there are some thousands. When threads add the same new blob concurrently,
/// only one copy of its bytes is used. The other copies are not overwritten, because a caller with an invalid id
/// may be reading them.
#[derive(Debug)]
pub struct BlobTable {
    index: BlobIndex,
    /// The bits of the [`BlobSpan`] of each id.
    spans: IdTable<AtomicU64>,
    bytes: BlobBytes,
    refused: AtomicU64,
}

/// The contents of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobTableStats {
    /// Blobs. A few may count twice: those that threads added concurrently.
    pub blobs: u32,
    /// Number of blobs that got no id, for lack of memory or of ids, or because they are too long.
    pub refused: u64,
    /// Bytes of all blobs, including unused ends of blocks.
    pub used_bytes: u64,
    /// Bytes of address space, for the blobs, their spans and the index.
    pub mapped_bytes: usize,
}

impl BlobTable {
    /// The maximum length of a blob: 256 MiB less one byte.
    pub const MAX_LENGTH: u64 = MAX_LENGTH;

    /// Creates an empty table, which needs no memory yet.
    pub const fn new() -> Self {
        Self {
            index: BlobIndex::new(),
            spans: IdTable::starting_with(1),
            bytes: BlobBytes::new(),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the id of the blob that is the concatenation of these parts, independent of how it is cut.
    ///
    /// `None` if it is new and the kernel provides no memory for it, if it is longer than `MAX_LENGTH`, or if no
    /// id is left; such calls are counted.
    pub fn intern(&self, parts: &[&[u8]]) -> Option<BlobId> {
        let hash = hash(parts);
        match self.index.find(hash, |id| self.is(id, parts)) {
            Some(id) => Some(id),
            None => self.intern_new(hash, parts),
        }
    }

    /// Returns the id of the blob that is the concatenation of these parts, if it has one.
    pub fn find(&self, parts: &[&[u8]]) -> Option<BlobId> {
        self.index.find(hash(parts), |id| self.is(id, parts))
    }

    /// Returns the bytes of all blobs, including unused ends of blocks.
    pub fn used_bytes(&self) -> u64 {
        self.bytes.used()
    }

    /// Returns the bytes of a blob. `None` if this table has not returned `id`.
    pub fn get(&self, id: BlobId) -> Option<&[u8]> {
        // Acquire: the bytes were written before their span.
        let span = BlobSpan::from_bits(self.spans.get(id.get())?.load(Ordering::Acquire))?;
        // SAFETY: `add` stores the result of `write` with Release, and does not free the span after that.
        unsafe { self.bytes.get(span) }
    }

    /// Returns the number of blobs. A few may count twice: those that threads added concurrently.
    pub fn len(&self) -> u32 {
        self.spans.last()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns statistics of its contents.
    pub fn stats(&self) -> BlobTableStats {
        BlobTableStats {
            blobs: self.len(),
            refused: self.refused.load(Ordering::Relaxed),
            used_bytes: self.used_bytes(),
            mapped_bytes: self.index.mapped_bytes() + self.spans.mapped_bytes() + self.bytes.mapped_bytes(),
        }
    }

    #[cold]
    #[inline(never)]
    fn intern_new(&self, hash: u64, parts: &[&[u8]]) -> Option<BlobId> {
        let mut added = None;
        let add_once = || {
            added = added.or_else(|| self.add(parts));
            added
        };
        let id = self.index.find_or_add(hash, |id| self.is(id, parts), add_once);
        if let Some(added) = added.filter(|added| id != Some(*added)) {
            self.free(added);
        }
        if id.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        id
    }

    /// Adds these parts with a new id, which is not in the index yet.
    fn add(&self, parts: &[&[u8]]) -> Option<BlobId> {
        let bytes = self.bytes.write(parts)?;
        let Some((number, span)) = self.spans.allocate() else {
            self.bytes.free(bytes);
            return None;
        };
        // Release: a thread that sees the span sees the bytes.
        span.store(bytes.to_bits(), Ordering::Release);
        BlobId::new(number)
    }

    /// Frees an id that no caller has received. Its bytes stay unused: see [`BlobTable`].
    fn free(&self, id: BlobId) {
        if let Some(span) = self.spans.get(id.get()) {
            span.store(0, Ordering::Relaxed);
        }
        self.spans.free(id.get());
    }

    /// Returns whether a blob is the concatenation of these parts.
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
    fn an_unknown_id_has_no_bytes() {
        let table = BlobTable::new();
        let ids = || [1, 2, 3, 5000, u32::MAX].map(|number| BlobId::new(number).unwrap());
        assert!(ids().iter().all(|id| table.get(*id).is_none()));
        table.intern(&[b"a"]);
        assert!(ids()[1..].iter().all(|id| table.get(*id).is_none()));
    }

    #[test]
    fn too_long_blobs_are_refused_and_counted() {
        let table = BlobTable::new();
        // Untouched zeros: the kernel maps one page many times.
        let long = vec![0_u8; 1 << 28];
        assert_eq!(table.intern(&[&long]), None);
        assert_eq!((table.stats().refused, table.len(), table.stats().used_bytes), (1, 0, 0));
        let id = table.intern(&[b"short"]).unwrap();
        assert_eq!((id.get(), table.stats().refused), (1, 1));
    }

    #[test]
    fn a_freed_id_is_reused_and_its_bytes_are_not_overwritten() {
        let table = BlobTable::new();
        let lost = table.add(&[b"lost"]).unwrap();
        let bytes = table.get(lost).unwrap();
        table.free(lost);
        assert_eq!((table.get(lost), table.intern(&[b"kept"])), (None, Some(lost)));
        assert_eq!((table.get(lost), bytes), (Some(&b"kept"[..]), &b"lost"[..]));
    }

    #[test]
    fn a_table_needs_no_memory_before_its_first_blob() {
        static TABLE: BlobTable = BlobTable::new();
        assert_eq!(TABLE.stats(), BlobTableStats::default());
        assert!(TABLE.is_empty() && TABLE.intern(&[b"a"]).is_some() && !TABLE.is_empty());
    }
}
