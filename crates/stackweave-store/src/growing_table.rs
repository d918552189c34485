//! Hash tables that grow by adding tables, without moving entries.
//!
//! Such a table is a sequence of tables of buckets, each as large as all before it. An entry is in the first bucket
//! of its hash's sequence that had a free slot, and stays there for good. So a lookup needs no lock and no retry,
//! growing moves nothing, and a thread that is stopped in the middle of adding, by a signal or a fork, blocks no
//! other thread.
//!
//! All threads that add the same entry try the same buckets in the same order, and skip only slots that another
//! entry has for good. So they meet at one slot, where one of them is first.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::lazy_block::{LazyBlock, ZeroIsValid};

/// Number of bits by which the hash is rotated for each table, so that entries that share a bucket are separated
/// in the next table.
const ROTATION: u32 = 13;

/// `FIRST` buckets in the first table and in the second, a power of two; `MORE` tables after the first.
#[derive(Debug)]
pub(crate) struct GrowingTable<B, const FIRST: usize, const MORE: usize> {
    /// Its length is known to the compiler: most lookups end here.
    first: LazyBlock<[B; FIRST]>,
    more: [LazyBlock<B>; MORE],
}

impl<B: ZeroIsValid, const FIRST: usize, const MORE: usize> GrowingTable<B, FIRST, MORE> {
    pub(crate) const fn new() -> Self {
        const { assert!(FIRST.is_power_of_two()) };
        Self { first: LazyBlock::new(1), more: LazyBlock::doubling_after(FIRST) }
    }

    /// Returns the first table, if it is mapped. The low bits of a hash are the number of its bucket there.
    #[inline]
    pub(crate) fn first_table(&self) -> Option<&[B; FIRST]> {
        self.first.only()
    }

    /// Returns the buckets of a hash, in their order, in the tables that are mapped.
    #[inline]
    pub(crate) fn mapped(&self, hash: u64) -> impl Iterator<Item = &B> {
        let more =
            self.more.iter().zip(rotations(hash)).map_while(|(table, rotated)| Some(bucket(table.get()?, rotated)));
        self.first.only().map(|first| bucket(first, hash)).into_iter().chain(more)
    }

    /// Returns the buckets of a hash, and maps each table when it is reached. Ends early if the kernel has no
    /// memory.
    pub(crate) fn mapping(&self, hash: u64) -> impl Iterator<Item = &B> {
        let first = self.first.get_or_map().and_then(<[_]>::first).map(|first| bucket(first, hash));
        let tables = if first.is_some() { &self.more[..] } else { &[] };
        let more =
            tables.iter().zip(rotations(hash)).map_while(|(table, rotated)| Some(bucket(table.get_or_map()?, rotated)));
        first.into_iter().chain(more)
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.first.mapped_bytes() + self.more.iter().map(LazyBlock::mapped_bytes).sum::<usize>()
    }
}

/// Returns the hash for each table after the first.
#[inline]
fn rotations(hash: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(hash.rotate_right(ROTATION)), |rotated| Some(rotated.rotate_right(ROTATION)))
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are needed")]
fn bucket<B>(buckets: &[B], rotated: u64) -> &B {
    &buckets[rotated as usize & (buckets.len() - 1)]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    type Words<const FIRST: usize> = GrowingTable<AtomicU64, FIRST, 3>;

    /// Returns the indices of a hash's buckets in their tables.
    fn places(table: &Words<16>, hash: u64) -> Vec<usize> {
        let buckets: Vec<&AtomicU64> = table.mapping(hash).collect();
        let more = table.more.iter().map(|table| table.get().unwrap());
        let tables = std::iter::once(&table.first.only().unwrap()[..]).chain(more);
        let place = |(table, bucket): (&[AtomicU64], &&AtomicU64)| {
            table.iter().position(|other| std::ptr::eq(other, *bucket)).unwrap()
        };
        tables.zip(&buckets).map(place).collect()
    }

    #[test]
    fn each_table_uses_other_bits_and_doubles_the_size() {
        let table = Words::<16>::new();
        assert_eq!(places(&table, 5), [5, 0, 0, 0]);
        assert_eq!(places(&table, 5 | 6 << 13 | 17 << 26 | 41 << 39), [5, 6, 17, 41]);
        assert_eq!(table.mapped_bytes(), 8 * (16 + 16 + 32 + 64));
    }

    #[test]
    fn lookups_map_nothing() {
        let table = Words::<16>::new();
        assert_eq!((table.mapped(7).count(), table.mapped_bytes()), (0, 0));
        assert!(table.first_table().is_none());
        assert!(table.mapping(7).nth(1).is_some());
        assert_eq!((table.mapped(7).count(), table.mapped_bytes()), (2, 256));
        assert!(std::ptr::eq(&raw const table.first_table().unwrap()[7], table.mapped(7).next().unwrap()));
    }

    #[test]
    fn the_sequence_ends_when_the_kernel_has_no_memory() {
        let table = Words::<{ 1 << 56 }>::new();
        assert_eq!((table.mapping(7).count(), table.mapped(7).count()), (0, 0));
    }
}
