//! Hash tables that grow by adding, not by moving.
//!
//! A cascade of tables of buckets, each as large as all before it. What is kept lies in the first bucket of its
//! hash's cascade that had room, and stays there for good. So looking needs no lock and no second look, growing
//! moves nothing, and a thread that is stopped in the middle of adding, by a signal or a fork, hinders nobody.
//!
//! All who add the same thing try the same buckets in the same order, and pass only what is taken, for good, by
//! something else. So they meet in one place, where one of them is first.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::lazy_block::{LazyBlock, ZeroIsValid};

/// How far the hash is turned for each table, so that what met in one bucket parts in the next.
const TURN: u32 = 13;

/// `FIRST` buckets in the first table and in the second, a power of two; `MORE` tables after the first.
#[derive(Debug)]
pub(crate) struct Cascade<B, const FIRST: usize, const MORE: usize> {
    /// Its length is known to the compiler: most looks end here.
    first: LazyBlock<[B; FIRST]>,
    more: [LazyBlock<B>; MORE],
}

impl<B: ZeroIsValid, const FIRST: usize, const MORE: usize> Cascade<B, FIRST, MORE> {
    pub(crate) const fn new() -> Self {
        const { assert!(FIRST.is_power_of_two()) };
        Self { first: LazyBlock::new(1), more: LazyBlock::doubling_after(FIRST) }
    }

    /// The first table, if it is mapped. A hash's bucket there is the one that its low bits number.
    #[inline]
    pub(crate) fn first_table(&self) -> Option<&[B; FIRST]> {
        self.first.only()
    }

    /// The buckets of a hash, in their order, in the tables that are mapped. Its low bits decide.
    #[inline]
    pub(crate) fn mapped(&self, hash: u64) -> impl Iterator<Item = &B> {
        let more = self.more.iter().zip(turns(hash)).map_while(|(table, turned)| Some(bucket(table.get()?, turned)));
        self.first.only().map(|first| bucket(first, hash)).into_iter().chain(more)
    }

    /// The same, and each table is mapped when its turn comes. Ends early if the kernel has no memory.
    pub(crate) fn mapping(&self, hash: u64) -> impl Iterator<Item = &B> {
        let first = self.first.get_or_map().and_then(<[_]>::first).map(|first| bucket(first, hash));
        let tables = if first.is_some() { &self.more[..] } else { &[] };
        let more =
            tables.iter().zip(turns(hash)).map_while(|(table, turned)| Some(bucket(table.get_or_map()?, turned)));
        first.into_iter().chain(more)
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.first.mapped_bytes() + self.more.iter().map(LazyBlock::mapped_bytes).sum::<usize>()
    }
}

/// What the hash is for the tables after the first.
#[inline]
fn turns(hash: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(hash.rotate_right(TURN)), |turned| Some(turned.rotate_right(TURN)))
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
fn bucket<B>(buckets: &[B], turned: u64) -> &B {
    &buckets[turned as usize & (buckets.len() - 1)]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    type Words<const FIRST: usize> = Cascade<AtomicU64, FIRST, 3>;

    /// Where the buckets of a hash lie in their tables.
    fn places(cascade: &Words<16>, hash: u64) -> Vec<usize> {
        let buckets: Vec<&AtomicU64> = cascade.mapping(hash).collect();
        let more = cascade.more.iter().map(|table| table.get().unwrap());
        let tables = std::iter::once(&cascade.first.only().unwrap()[..]).chain(more);
        let place = |(table, bucket): (&[AtomicU64], &&AtomicU64)| {
            table.iter().position(|other| std::ptr::eq(other, *bucket)).unwrap()
        };
        tables.zip(&buckets).map(place).collect()
    }

    #[test]
    fn each_table_looks_at_other_bits_and_doubles_what_there_is() {
        let cascade = Words::<16>::new();
        assert_eq!(places(&cascade, 5), [5, 0, 0, 0]);
        assert_eq!(places(&cascade, 5 | 6 << 13 | 17 << 26 | 41 << 39), [5, 6, 17, 41]);
        assert_eq!(cascade.mapped_bytes(), 8 * (16 + 16 + 32 + 64));
    }

    #[test]
    fn looking_maps_nothing() {
        let cascade = Words::<16>::new();
        assert_eq!((cascade.mapped(7).count(), cascade.mapped_bytes()), (0, 0));
        assert!(cascade.first_table().is_none());
        assert!(cascade.mapping(7).nth(1).is_some());
        assert_eq!((cascade.mapped(7).count(), cascade.mapped_bytes()), (2, 256));
        assert!(std::ptr::eq(&raw const cascade.first_table().unwrap()[7], cascade.mapped(7).next().unwrap()));
    }

    #[test]
    fn it_ends_where_the_kernel_has_no_memory() {
        let cascade = Words::<{ 1 << 56 }>::new();
        assert_eq!((cascade.mapping(7).count(), cascade.mapped(7).count()), (0, 0));
    }
}
