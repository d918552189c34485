//! A map from addresses of objects to numbers, shared by all threads.
//!
//! Each address gets a slot and keeps it: slots of the [`GrowingTable`] are claimed and never released. The hash of an
//! address names the slot to check first. Nearly always the address has that slot or another one in the same cache
//! line, so a lookup is one multiplication and one cache line, and does not depend on the previous lookup.
//!
//! Nothing here blocks. A thread that is stopped in the middle of an insertion has at most claimed a slot, which
//! the next thread that inserts that address uses.
//!
//! Hot file: no allocation, no lock, async-signal-safe; no system call except for the memory of new addresses.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::growing_table::GrowingTable;
use crate::lazy_block::ZeroIsValid;

/// Two cache lines. The second is checked when the first is full.
const SLOTS: usize = 8;
const SLOTS_IN_LINE: usize = 4;
/// 256 KiB.
const FIRST_BUCKETS: usize = 1 << 11;
/// 2^29 slots in total.
const MORE_TABLES: usize = 15;
/// Multipliers of the hash; any numbers without a pattern.
const MIX: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

#[derive(Debug)]
#[repr(C, align(16))]
struct Slot {
    /// The address that owns the slot, for good; 0: free.
    address: AtomicU64,
    /// 0: none.
    value: AtomicU32,
}

// SAFETY: any bits are valid numbers.
unsafe impl ZeroIsValid for Slot {}

/// Aligned to its size, because tables begin at a page.
type Bucket = [Slot; SLOTS];

/// A map from addresses of objects to numbers, for a `static` that all threads share.
///
/// The map knows addresses, not objects. So the result of `get` is about an object only if the caller knows that
/// the object lives, and if the previous object at that address was removed before its memory was freed. Then:
///
/// - `get` returns the value of the last insertion, unless it was removed since. The thread that gets the value
///   also sees what the inserting thread wrote before.
/// - Of concurrent insertions for one address, one wins, and all return its value.
/// - An address uses one slot, however often it is removed and inserted again. So there are never more used slots
///   than distinct addresses, and removing frees no memory.
///
/// For an address that no other thread inserts or removes at the same time, the map behaves like any other map.
#[derive(Debug)]
pub struct AddressMap {
    table: GrowingTable<Bucket, FIRST_BUCKETS, MORE_TABLES>,
    addresses: AtomicU32,
    inserted: AtomicU64,
    removed: AtomicU64,
    refused: AtomicU64,
}

/// The contents of a map. Concurrent insertions and removals may not be counted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressMapStats {
    /// Addresses that have a value.
    pub live: u64,
    /// Addresses that have a slot: all that have ever been inserted.
    pub addresses: u32,
    /// Number of values that were removed.
    pub removed: u64,
    /// Number of addresses that got no slot, for lack of memory.
    pub refused: u64,
    /// Bytes of address space.
    pub mapped_bytes: usize,
}

impl AddressMap {
    /// Creates an empty map, which needs no memory yet.
    pub const fn new() -> Self {
        Self {
            table: GrowingTable::new(),
            addresses: AtomicU32::new(0),
            inserted: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the value of an address. Address 0 has none.
    #[inline]
    pub fn get(&self, address: u64) -> Option<u32> {
        let slots = self.table.first_table()?.as_flattened();
        let home = home(hash(address));
        for step in 0..SLOTS_IN_LINE {
            let slot = &slots[(home ^ step) % slots.len()];
            // Load the value first: if the slot is free after that, and its address 0, then there is no value.
            let value = slot.value();
            if slot.address.load(Ordering::Relaxed) == address {
                return value;
            }
        }
        self.find(address)?.value()
    }

    /// Assigns a value to an address, unless it has one. Returns its value; `None` if there is no memory, which is
    /// counted, or if `address` or `value` is 0.
    pub fn insert(&self, address: u64, value: u32) -> Option<u32> {
        if address == 0 || value == 0 {
            return None;
        }
        let Some(slot) = self.find_or_claim(address) else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        // Release: a thread that gets the value sees what it represents.
        match slot.value.compare_exchange(0, value, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                self.inserted.fetch_add(1, Ordering::Relaxed);
                Some(value)
            }
            Err(winner) => Some(winner),
        }
    }

    /// Removes the value of an address, and returns it.
    pub fn remove(&self, address: u64) -> Option<u32> {
        let value = self.find(address)?.value.swap(0, Ordering::AcqRel);
        if value == 0 {
            return None;
        }
        self.removed.fetch_add(1, Ordering::Relaxed);
        Some(value)
    }

    /// Returns statistics of its contents.
    pub fn stats(&self) -> AddressMapStats {
        let removed = self.removed.load(Ordering::Relaxed);
        AddressMapStats {
            live: self.inserted.load(Ordering::Relaxed).saturating_sub(removed),
            addresses: self.addresses.load(Ordering::Relaxed),
            removed,
            refused: self.refused.load(Ordering::Relaxed),
            mapped_bytes: self.table.mapped_bytes(),
        }
    }

    /// Returns the slot of an address. Slots are claimed in the order of the search, so a free one ends it.
    #[inline(never)]
    fn find(&self, address: u64) -> Option<&Slot> {
        let hash = hash(address);
        for slot in self.table.mapped(bucket_hash(hash)).flat_map(|bucket| slots(bucket, hash)) {
            match slot.address.load(Ordering::Relaxed) {
                0 => return None,
                owner if owner == address => return Some(slot),
                _ => {}
            }
        }
        None
    }

    fn find_or_claim(&self, address: u64) -> Option<&Slot> {
        let hash = hash(address);
        self.table.mapping(bucket_hash(hash)).flat_map(|bucket| slots(bucket, hash)).find(|slot| {
            let mut owner = slot.address.load(Ordering::Relaxed);
            if owner == 0 {
                match slot.address.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => {
                        self.addresses.fetch_add(1, Ordering::Relaxed);
                        return true;
                    }
                    Err(other) => owner = other,
                }
            }
            owner == address
        })
    }
}

impl Default for AddressMap {
    fn default() -> Self {
        Self::new()
    }
}

impl Slot {
    #[inline]
    fn value(&self) -> Option<u32> {
        let value = self.value.load(Ordering::Acquire);
        (value != 0).then_some(value)
    }
}

/// Folds both halves of a product, so that every bit of the address affects the low and the high bits. Without the
/// first step, consecutive addresses, as allocators return them, would collide far more often than random ones.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the product is split")]
fn hash(address: u64) -> u64 {
    let product = u128::from(address ^ MIX[0]) * u128::from(MIX[1]);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the number of its home slot, whose low bits count: in the first table, or in one of its buckets.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are needed")]
fn home(hash: u64) -> usize {
    hash as usize
}

/// Returns the part of the hash that selects its buckets: the bits above those that number a slot.
fn bucket_hash(hash: u64) -> u64 {
    hash.rotate_right(SLOTS.ilog2())
}

/// Returns all slots of a bucket, beginning with the home of this hash; those in its cache line come first.
fn slots(bucket: &Bucket, hash: u64) -> impl Iterator<Item = &Slot> {
    (0..SLOTS).map(move |step| &bucket[(home(hash) ^ step) % SLOTS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_line_holds_four_slots() {
        assert_eq!((size_of::<Slot>() * SLOTS_IN_LINE, size_of::<Bucket>()), (64, 128));
    }

    #[test]
    fn an_address_keeps_its_first_value_until_it_is_removed() {
        let map = AddressMap::new();
        assert_eq!((map.get(64), map.remove(64)), (None, None));
        assert_eq!(map.insert(64, 7), Some(7));
        assert_eq!(map.insert(64, 8), Some(7));
        assert_eq!((map.get(64), map.get(80)), (Some(7), None));
        assert_eq!((map.remove(64), map.remove(64), map.get(64)), (Some(7), None, None));
        assert_eq!((map.insert(64, 8), map.get(64)), (Some(8), Some(8)));
        let stats = map.stats();
        assert_eq!((stats.live, stats.addresses, stats.removed, stats.refused), (1, 1, 1, 0));
    }

    #[test]
    fn zero_is_neither_an_address_nor_a_value() {
        let map = AddressMap::new();
        assert_eq!((map.insert(0, 1), map.insert(64, 0), map.get(0), map.remove(0)), (None, None, None, None));
        assert_eq!(map.stats(), AddressMapStats::default());
        assert_eq!(map.insert(64, 1), Some(1));
        assert_eq!((map.get(0), map.remove(0), map.insert(0, 1)), (None, None, None));
        assert_eq!(map.stats().addresses, 1);
    }

    #[test]
    fn every_slot_of_a_bucket_is_checked_and_its_home_line_first() {
        let bucket = [const { Slot { address: AtomicU64::new(0), value: AtomicU32::new(0) } }; SLOTS];
        for home in 0..SLOTS as u64 {
            let place = |slot: &Slot| bucket.iter().position(|other| std::ptr::eq(other, slot)).unwrap();
            let mut places: Vec<usize> = slots(&bucket, home).map(place).collect();
            assert_eq!(places[0] as u64, home);
            assert!(places[..4].iter().all(|place| place / 4 == places[0] / 4));
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
    }

    #[test]
    fn a_slot_of_a_stopped_claimer_is_used() {
        let map = AddressMap::new();
        let claimed = map.find_or_claim(4096).unwrap();
        assert_eq!((map.get(4096), map.remove(4096)), (None, None));
        assert_eq!(map.insert(4096, 3), Some(3));
        // The claimer continues, and uses the existing value.
        assert_eq!((claimed.value(), map.insert(4096, 4)), (Some(3), Some(3)));
        assert_eq!(map.stats().addresses, 1);
    }

    fn is_home(map: &AddressMap, address: u64) -> bool {
        let slots = map.table.first_table().unwrap().as_flattened();
        let slot = &slots[home(hash(address)) % slots.len()];
        slot.address.load(Ordering::Relaxed) == address
    }

    /// Objects of one size, as allocators place them. Half as many as there are slots: with random addresses,
    /// three of four would be the first in their slot, and one of 130 would find its bucket full.
    #[test]
    fn consecutive_addresses_spread_like_random_ones() {
        let strides = (1..100).map(|words| words * 16).chain((12..31).map(|bit| 1 << bit));
        for (start, stride) in strides.flat_map(|stride| [(0x7f3a_1234_0030, stride), (0x55d0_8000_0010, stride)]) {
            let map = AddressMap::new();
            let addresses = || (0..8000).map(|number| start + number * stride);
            for (value, address) in (1..).zip(addresses()) {
                assert_eq!(map.insert(address, value), Some(value));
            }
            assert!((1..).zip(addresses()).all(|(value, address)| map.get(address) == Some(value)));
            let at_home = addresses().filter(|address| is_home(&map, *address)).count();
            assert!(at_home > 4500, "{at_home} of 8000, {stride} bytes apart");
            let in_later_tables = map.table.mapped(0).skip(1).count();
            assert!(in_later_tables <= 2, "{in_later_tables} tables more, {stride} bytes apart");
        }
    }
}
