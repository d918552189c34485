//! Live blocks, by address: open addressing in memory straight from the kernel.
//!
//! A slot has 16 bytes. A large table uses at most three of four slots, so a block takes 21 to 43 bytes. The high bits
//! of a block's hash choose its slot: when the table doubles, blocks keep their order, and growing it moves them from
//! one end to the other. A map beside the table holds blocks that do not fit into a slot; no allocator returns such
//! blocks.
//!
//! Hot file: allocates only when the table grows, and keeps the smaller table if there is no memory.

use std::collections::HashMap;
use std::mem;
use std::slice;

use memmap2::{MmapMut, MmapOptions};

use crate::call_sites::CallSiteId;
use crate::{prefer_large_pages, prefetch};

/// The size and the call site of a live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) size: u64,
    pub(crate) site: CallSiteId,
}

/// The error when there is no memory for another block.
#[derive(Debug)]
pub(crate) struct Full;

/// A block in two words, which are zero if there is no block.
///
/// ```text
/// first word   address (56 bits), low byte of the size
/// second word  the rest of the size (32 bits), site (32 bits)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct Slot([u64; 2]);

const ADDRESS_SHIFT: u32 = 8;
const SIZE_BITS: u32 = 40;
const FIRST_SLOTS: usize = 1 << 12;
/// After a failure, memory is requested again after this many blocks.
const PATIENCE: u32 = 1 << 16;
/// Up to this size in bytes, half of a table stays empty: such a table is in the processor's caches, where the cost is
/// in looking at many slots. In a larger table a quarter stays empty.
const SMALL: usize = 2 << 20;
/// From this size in bytes on, a table is in large pages if the kernel has some, because accesses go to all of its
/// pages.
const LARGE: usize = 4 << 20;
const MIX: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

impl Slot {
    fn new(address: u64, entry: Entry) -> Option<Self> {
        let fits = address != 0 && address >> (64 - ADDRESS_SHIFT) == 0 && entry.size >> SIZE_BITS == 0;
        let (low, high) = (entry.size & 0xff, entry.size >> ADDRESS_SHIFT);
        fits.then(|| Self([address << ADDRESS_SHIFT | low, high << 32 | u64::from(entry.site.0)]))
    }

    #[inline]
    const fn address(self) -> u64 {
        self.0[0] >> ADDRESS_SHIFT
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is the site")]
    const fn entry(self) -> Entry {
        let size = self.0[1] >> 32 << ADDRESS_SHIFT | self.0[0] & 0xff;
        Entry { size, site: CallSiteId(self.0[1] as u32) }
    }

    #[inline]
    const fn is_empty(self) -> bool {
        self.0[0] == 0
    }
}

/// Folds both halves of a product, so that addresses in a row spread like random ones.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the product is taken apart")]
fn hash(address: u64) -> u64 {
    let product = u128::from(address ^ MIX[0]) * u128::from(MIX[1]);
    product as u64 ^ (product >> 64) as u64
}

#[derive(Debug, Default)]
pub(crate) struct BlockTable {
    /// A power of two of slots; `None` before the first block.
    map: Option<MmapMut>,
    /// The number of slots.
    length: usize,
    used: usize,
    /// The number of used slots at which the table grows.
    most: usize,
    /// The number of further failures before memory is requested again.
    patience: u32,
    /// Blocks that do not fit into a slot.
    others: HashMap<u64, Entry>,
}

impl BlockTable {
    /// Adds a block, and returns the block that was at this address.
    #[inline]
    pub(crate) fn insert(&mut self, address: u64, entry: Entry) -> Result<Option<Entry>, Full> {
        let Some(slot) = Slot::new(address, entry).filter(|_| self.others.is_empty()) else {
            return self.insert_elsewhere(address, entry);
        };
        self.insert_slot(address, slot)
    }

    #[inline]
    fn insert_slot(&mut self, address: u64, slot: Slot) -> Result<Option<Entry>, Full> {
        if self.used >= self.most {
            self.grow()?;
        }
        let (mask, mut at) = (self.length - 1, self.home(address));
        let slots = self.slots_mut();
        while !slots[at].is_empty() {
            if slots[at].address() == address {
                return Ok(Some(mem::replace(&mut slots[at], slot).entry()));
            }
            at = (at + 1) & mask;
        }
        slots[at] = slot;
        self.used += 1;
        Ok(None)
    }

    #[cold]
    fn insert_elsewhere(&mut self, address: u64, entry: Entry) -> Result<Option<Entry>, Full> {
        let before = self.remove(address);
        let added = match Slot::new(address, entry) {
            Some(slot) => self.insert_slot(address, slot),
            None => self.others.try_reserve(1).map_err(|_| Full).map(|()| self.others.insert(address, entry)),
        };
        added.map(|_| before)
    }

    /// Removes a block, and returns it.
    #[inline]
    pub(crate) fn remove(&mut self, address: u64) -> Option<Entry> {
        match self.find(address) {
            Some(at) => {
                let entry = self.slots()[at].entry();
                self.close_gap(at);
                self.used -= 1;
                Some(entry)
            }
            None if self.others.is_empty() => None,
            None => self.others.remove(&address),
        }
    }

    /// Moves blocks behind an empty slot into it, unless that is before their first choice.
    #[inline]
    fn close_gap(&mut self, mut gap: usize) {
        let (mask, shift) = (self.length - 1, self.shift());
        let slots = self.slots_mut();
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            if slots[at].is_empty() {
                break;
            }
            let home = home(slots[at].address(), shift);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                slots[gap] = slots[at];
                gap = at;
            }
        }
        slots[gap] = Slot::default();
    }

    pub(crate) fn get(&self, address: u64) -> Option<Entry> {
        self.find(address).map(|at| self.slots()[at].entry()).or_else(|| self.others.get(&address).copied())
    }

    #[inline]
    fn find(&self, address: u64) -> Option<usize> {
        let slots = self.slots();
        if slots.is_empty() || address == 0 {
            return None;
        }
        let (mask, mut at) = (slots.len() - 1, self.home(address));
        while !slots[at].is_empty() {
            if slots[at].address() == address {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Returns whether the table is small enough for the processor's caches.
    #[inline]
    pub(crate) fn is_small(&self) -> bool {
        self.length * size_of::<Slot>() <= SMALL
    }

    /// Prefetches the slot in which this block is, or will be.
    #[inline]
    pub(crate) fn prefetch(&self, address: u64) {
        if let Some(slot) = self.slots().get(self.home(address)) {
            prefetch(slot);
        }
    }

    /// Doubles the table. If there is no memory, fails only once fewer than one slot in eight is empty.
    #[cold]
    fn grow(&mut self) -> Result<(), Full> {
        self.patience = self.patience.saturating_sub(1);
        let grown = if self.patience == 0 { Self::with_slots((self.length * 2).max(FIRST_SLOTS)) } else { None };
        let Some(mut grown) = grown else {
            self.patience = if self.patience == 0 { PATIENCE } else { self.patience };
            return if (self.used + 1) * 8 <= self.length * 7 { Ok(()) } else { Err(Full) };
        };
        for slot in self.slots().iter().filter(|slot| !slot.is_empty()) {
            grown.insert_slot(slot.address(), *slot)?;
        }
        (self.map, self.length, self.most) = (grown.map, grown.length, grown.most);
        Ok(())
    }

    fn with_slots(length: usize) -> Option<Self> {
        let bytes = length.checked_mul(size_of::<Slot>())?;
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok()?;
        if bytes >= LARGE {
            prefer_large_pages(&map);
        }
        let most = if bytes <= SMALL { length / 2 } else { length / 4 * 3 };
        Some(Self { map: Some(map), length, most, ..Self::default() })
    }

    #[inline]
    fn shift(&self) -> u32 {
        64 - self.length.trailing_zeros()
    }

    #[inline]
    fn home(&self, address: u64) -> usize {
        home(address, self.shift())
    }

    #[inline]
    fn slots(&self) -> &[Slot] {
        let Some(map) = &self.map else { return &[] };
        // SAFETY: the mapping has `length` slots, is aligned to a page, and any bytes are a slot.
        unsafe { slice::from_raw_parts(map.as_ptr().cast(), self.length) }
    }

    #[inline]
    fn slots_mut(&mut self) -> &mut [Slot] {
        let Some(map) = &mut self.map else { return &mut [] };
        // SAFETY: as in `slots`; `self` owns the mapping and is borrowed mutably, so there is no other reference to it.
        unsafe { slice::from_raw_parts_mut(map.as_mut_ptr().cast(), self.length) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Entry)> {
        let taken = self.slots().iter().filter(|slot| !slot.is_empty());
        taken.map(|slot| (slot.address(), slot.entry())).chain(self.others.iter().map(|(at, entry)| (*at, *entry)))
    }

    pub(crate) fn bytes_used(&self) -> usize {
        self.length * size_of::<Slot>() + self.others.capacity() * size_of::<(u64, Entry)>()
    }
}

/// Returns the slot that is a block's first choice. `shift` is 64 minus the bits of a slot's number. The result is
/// arbitrary for a table without slots.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "as many bits as the table has slots")]
fn home(address: u64, shift: u32) -> usize {
    hash(address).wrapping_shr(shift) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use stackweave_testkit::random::Random;

    use super::*;

    fn entry(size: u64, site: u32) -> Entry {
        Entry { size, site: CallSiteId(site) }
    }

    #[test]
    fn a_slot_holds_what_was_put_in() {
        assert_eq!(size_of::<Slot>(), 16);
        for address in [1, 0x7fff_1234_5670, (1 << 56) - 1] {
            for size in [0, 1, 255, 256, (1 << 40) - 1] {
                let slot = Slot::new(address, entry(size, u32::MAX)).unwrap();
                assert_eq!((slot.address(), slot.entry()), (address, entry(size, u32::MAX)));
            }
        }
        assert!(Slot::new(0, entry(1, 1)).is_none() && Slot::new(1 << 56, entry(1, 1)).is_none());
        assert!(Slot::new(16, entry(1 << 40, 1)).is_none());
    }

    /// Compares with an ordered map. There are few addresses, so they collide: at both ends of the table, and in the
    /// map beside it.
    #[test]
    fn it_is_a_map() {
        for seed in 0..20 {
            let (mut random, mut table, mut truth) = (Random::new(seed), BlockTable::default(), BTreeMap::new());
            for _ in 0..20_000 {
                let address = (random.below(3000) as u64) << [0, 4, 50][random.below(3)];
                if random.below(2) == 0 {
                    let added = entry((random.bits() & 0xffff) << [0, 30][usize::from(random.below(50) == 0)], 7);
                    assert_eq!(table.insert(address, added).unwrap(), truth.insert(address, added), "seed {seed}");
                } else {
                    assert_eq!(table.remove(address), truth.remove(&address), "seed {seed}");
                }
            }
            let mut left: Vec<_> = table.iter().collect();
            left.sort_unstable_by_key(|block| block.0);
            assert_eq!(left, truth.into_iter().collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn rows_of_addresses_stay_near_their_homes() {
        for stride in (1..40).map(|words| words * 16).chain((12..24).map(|bit| 1 << bit)) {
            let mut table = BlockTable::default();
            for number in 0..4000 {
                table.insert(0x7f3a_1234_0030 + number * stride, entry(16, 1)).unwrap();
            }
            let far = table.slots().iter().enumerate().filter(|(at, slot)| {
                !slot.is_empty() && at.wrapping_sub(table.home(slot.address())) & (table.length - 1) > 16
            });
            assert!(far.count() < 120, "{stride} bytes apart");
        }
    }
}
