//! Live blocks, by address: open addressing in memory straight from the kernel.
//!
//! A slot is 12 bytes and a value. With a value of 4 bytes, and at most three of four slots used, a block of many takes
//! 21 to 43 bytes. The place of a block is in the high bits of its hash: when the table doubles, blocks keep their
//! order, and are moved from one end to the other. What does not fit into a slot, which no allocator returns, is kept in
//! a map beside it.
//!
//! Hot file: allocates only when the table grows, and keeps the smaller table if there is no memory.

use std::collections::HashMap;
use std::mem::{self, MaybeUninit};
use std::slice;

use memmap2::{MmapMut, MmapOptions};

use crate::{prefer_large_pages, prefetch};

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock<V> {
    /// The size in bytes.
    pub size: u64,
    /// The value that was stored with it.
    pub value: V,
}

/// There is no memory for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A block with its address. Fields of 4 bytes are aligned, and larger ones need not be, so that there are no gaps.
#[repr(C, packed(4))]
struct BlockSlot<V> {
    /// The address (56 bits), and the low byte of the size; zero where there is no block.
    head: u64,
    /// The rest of the size.
    size: u32,
    /// Initialized if there is a block.
    value: MaybeUninit<V>,
}

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

impl<V: Copy> Clone for BlockSlot<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Copy> Copy for BlockSlot<V> {}

impl<V: Copy> BlockSlot<V> {
    const EMPTY: Self = Self { head: 0, size: 0, value: MaybeUninit::uninit() };

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the size has 40 bits")]
    fn new(address: u64, block: LiveBlock<V>) -> Option<Self> {
        let fits = address != 0 && address >> (64 - ADDRESS_SHIFT) == 0 && block.size >> SIZE_BITS == 0;
        let (head, size) = (address << ADDRESS_SHIFT | block.size & 0xff, (block.size >> ADDRESS_SHIFT) as u32);
        fits.then(|| Self { head, size, value: MaybeUninit::new(block.value) })
    }

    #[inline]
    const fn is_empty(self) -> bool {
        self.head == 0
    }

    #[inline]
    const fn address(self) -> u64 {
        self.head >> ADDRESS_SHIFT
    }

    /// Returns the block of a slot that is not empty.
    #[inline]
    fn block(self) -> LiveBlock<V> {
        assert!(!self.is_empty());
        // SAFETY: every slot that is not empty is from `new`, which has initialized the value.
        let value = unsafe { self.value.assume_init() };
        LiveBlock { size: u64::from(self.size) << ADDRESS_SHIFT | self.head & 0xff, value }
    }
}

/// Folds both halves of a product, so that addresses in a row spread like random ones.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the product is taken apart")]
fn hash(address: u64) -> u64 {
    let product = u128::from(address ^ MIX[0]) * u128::from(MIX[1]);
    product as u64 ^ (product >> 64) as u64
}

/// Live blocks by address, with a value for each.
#[derive(Debug)]
pub struct LiveBlocks<V> {
    /// A power of two of slots; `None` before the first block.
    map: Option<MmapMut>,
    /// The number of slots.
    length: usize,
    used: usize,
    /// The number of used slots at which the table grows.
    most: usize,
    /// The number of further failures before memory is requested again.
    patience: u32,
    /// Blocks that fit into no slot.
    others: HashMap<u64, LiveBlock<V>>,
}

impl<V> Default for LiveBlocks<V> {
    fn default() -> Self {
        Self { map: None, length: 0, used: 0, most: 0, patience: 0, others: HashMap::new() }
    }
}

impl<V: Copy> LiveBlocks<V> {
    /// Adds a block, and returns the one that was there.
    #[inline]
    pub fn insert(&mut self, address: u64, block: LiveBlock<V>) -> Result<Option<LiveBlock<V>>, Full> {
        let Some(slot) = BlockSlot::new(address, block).filter(|_| self.others.is_empty()) else {
            return self.insert_elsewhere(address, block);
        };
        self.insert_slot(address, slot)
    }

    #[inline]
    fn insert_slot(&mut self, address: u64, slot: BlockSlot<V>) -> Result<Option<LiveBlock<V>>, Full> {
        if self.used >= self.most {
            self.grow()?;
        }
        let (mask, mut at) = (self.length - 1, self.home(address));
        let slots = self.slots_mut();
        while !slots[at].is_empty() {
            if slots[at].address() == address {
                return Ok(Some(mem::replace(&mut slots[at], slot).block()));
            }
            at = (at + 1) & mask;
        }
        slots[at] = slot;
        self.used += 1;
        Ok(None)
    }

    #[cold]
    fn insert_elsewhere(&mut self, address: u64, block: LiveBlock<V>) -> Result<Option<LiveBlock<V>>, Full> {
        let before = self.remove(address);
        let added = match BlockSlot::new(address, block) {
            Some(slot) => self.insert_slot(address, slot),
            None => self.others.try_reserve(1).map_err(|_| Full).map(|()| self.others.insert(address, block)),
        };
        added.map(|_| before)
    }

    /// Removes the block at an address.
    #[inline]
    pub fn remove(&mut self, address: u64) -> Option<LiveBlock<V>> {
        match self.find(address) {
            Some(at) => {
                let block = self.slots()[at].block();
                self.close_gap(at);
                self.used -= 1;
                Some(block)
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
        slots[gap] = BlockSlot::EMPTY;
    }

    /// Returns the block at an address.
    pub fn get(&self, address: u64) -> Option<LiveBlock<V>> {
        self.find(address).map(|at| self.slots()[at].block()).or_else(|| self.others.get(&address).copied())
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
        self.length * size_of::<BlockSlot<V>>() <= SMALL
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
        let bytes = length.checked_mul(size_of::<BlockSlot<V>>())?;
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
    fn slots(&self) -> &[BlockSlot<V>] {
        let Some(map) = &self.map else { return &[] };
        // SAFETY: the mapping has `length` slots and is aligned to a page. It began as zeros, which are empty slots.
        unsafe { slice::from_raw_parts(map.as_ptr().cast(), self.length) }
    }

    #[inline]
    fn slots_mut(&mut self) -> &mut [BlockSlot<V>] {
        let Some(map) = &mut self.map else { return &mut [] };
        // SAFETY: as in `slots`; `self` owns the mapping and is borrowed mutably, so there is no other reference to it.
        unsafe { slice::from_raw_parts_mut(map.as_mut_ptr().cast(), self.length) }
    }

    /// Changes the values of all blocks.
    pub fn update_values(&mut self, mut change: impl FnMut(&mut V)) {
        for slot in self.slots_mut().iter_mut().filter(|slot| !slot.is_empty()) {
            let mut value = slot.block().value;
            change(&mut value);
            slot.value = MaybeUninit::new(value);
        }
        self.others.values_mut().for_each(|block| change(&mut block.value));
    }

    /// Returns all blocks with their addresses, unsorted.
    pub fn iter(&self) -> impl Iterator<Item = (u64, LiveBlock<V>)> {
        let taken = self.slots().iter().filter(|slot| !slot.is_empty());
        taken.map(|slot| (slot.address(), slot.block())).chain(self.others.iter().map(|(at, block)| (*at, *block)))
    }

    /// Returns the size of the table.
    pub(crate) fn bytes_used(&self) -> usize {
        self.length * size_of::<BlockSlot<V>>() + self.others.capacity() * size_of::<(u64, LiveBlock<V>)>()
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

    fn block<V>(size: u64, value: V) -> LiveBlock<V> {
        LiveBlock { size, value }
    }

    #[test]
    fn a_slot_holds_what_was_put_in() {
        assert_eq!(
            (size_of::<BlockSlot<u32>>(), size_of::<BlockSlot<[u32; 2]>>(), size_of::<BlockSlot<()>>()),
            (16, 20, 12)
        );
        for address in [1, 0x7fff_1234_5670, (1 << 56) - 1] {
            for size in [0, 1, 255, 256, (1 << 40) - 1] {
                let slot = BlockSlot::new(address, block(size, u32::MAX)).unwrap();
                assert_eq!((slot.address(), slot.block()), (address, block(size, u32::MAX)));
            }
        }
        assert!(BlockSlot::new(0, block(1, 1)).is_none() && BlockSlot::new(1 << 56, block(1, 1)).is_none());
        assert!(BlockSlot::new(16, block(1 << 40, 1)).is_none());
    }

    /// Compares with an ordered map: few addresses, so that they collide, at both ends of the table and beside it.
    fn is_a_map<V: Copy + std::fmt::Debug + PartialEq>(value: fn(u64) -> V) {
        for seed in 0..10 {
            let (mut random, mut table, mut truth) = (Random::new(seed), LiveBlocks::default(), BTreeMap::new());
            for step in 0..20_000 {
                let address = (random.below(3000) as u64) << [0, 4, 50][random.below(3)];
                if random.below(2) == 0 {
                    let size = (random.bits() & 0xffff) << [0, 30][usize::from(random.below(50) == 0)];
                    let added = block(size, value(step));
                    assert_eq!(table.insert(address, added).unwrap(), truth.insert(address, added), "seed {seed}");
                } else {
                    assert_eq!(table.remove(address), truth.remove(&address), "seed {seed}");
                }
                assert_eq!(table.get(address), truth.get(&address).copied(), "seed {seed}");
            }
            let sorted = |table: &LiveBlocks<V>| {
                let mut left: Vec<_> = table.iter().collect();
                left.sort_unstable_by_key(|block| block.0);
                left
            };
            assert_eq!(sorted(&table), truth.clone().into_iter().collect::<Vec<_>>(), "seed {seed}");
            table.update_values(|of| *of = value(7));
            for of in truth.values_mut() {
                of.value = value(7);
            }
            assert_eq!(sorted(&table), truth.into_iter().collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn it_is_a_map_whatever_the_values() {
        is_a_map(|_| ());
        is_a_map(|step| u32::try_from(step).unwrap());
        is_a_map(|step| (step, step % 3 == 0, u128::from(step)));
    }

    #[test]
    fn rows_of_addresses_stay_near_their_homes() {
        for stride in (1..40).map(|words| words * 16).chain((12..24).map(|bit| 1 << bit)) {
            let mut table = LiveBlocks::default();
            for number in 0..4000 {
                table.insert(0x7f3a_1234_0030 + number * stride, block(16, 1)).unwrap();
            }
            let far = table.slots().iter().enumerate().filter(|(at, slot)| {
                !slot.is_empty() && at.wrapping_sub(table.home(slot.address())) & (table.length - 1) > 16
            });
            assert!(far.count() < 120, "{stride} bytes apart");
        }
    }
}
