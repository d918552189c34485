//! The live blocks and mappings of a process or a device, while events are read in the order of time.
//!
//! This file owns the rules of what an event changes; [`Ledger`](crate::Ledger) adds figures to it.
//!
//! Hot file: allocates only for a new thread or mapping, or for a table that is full.

use std::collections::HashMap;
use std::mem;

use crate::by_thread::ByThread;
use crate::live_blocks::{Full, LiveBlock, LiveBlocks};
use crate::live_ranges::{Cut, FreedEnd, LiveRanges, MappingPart, Restored};

/// Live blocks and mappings, with a value for each, and with a note about each thread's last free.
#[derive(Debug)]
pub struct LiveHeap<V, N = ()> {
    blocks: LiveBlocks<V>,
    ranges: LiveRanges<V>,
    last_frees: ByThread<LastFree<V, N>>,
    /// The parts of mappings that each thread unmapped last.
    last_cuts: HashMap<u32, Vec<(Cut<V>, N)>>,
}

/// The last free of a thread, which may have failed.
#[derive(Debug)]
struct LastFree<V, N> {
    address: u64,
    freed: Freed<V, N>,
}

#[derive(Debug, Default)]
enum Freed<V, N> {
    #[default]
    Nothing,
    /// Memory whose allocation is not known.
    Unknown,
    Block(LiveBlock<V>, N),
    /// Parts of mappings, which are in `last_cuts`.
    Ranges,
}

/// The changes because a free has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept<V, N> {
    /// Nothing: it was not the last free of its thread, or the address is used again.
    Nothing,
    /// The free was of memory whose allocation is not known.
    Unknown,
    /// A block is live again.
    Block(LiveBlock<V>, N),
    /// Parts of mappings are live again, those that were cut off.
    Ranges(Vec<(Cut<V>, N, Restored<V>)>),
}

impl<V, N> Default for LastFree<V, N> {
    fn default() -> Self {
        Self { address: 0, freed: Freed::Nothing }
    }
}

impl<V, N> Default for LiveHeap<V, N> {
    fn default() -> Self {
        Self {
            blocks: LiveBlocks::default(),
            ranges: LiveRanges::default(),
            last_frees: ByThread::new(1),
            last_cuts: HashMap::new(),
        }
    }
}

impl<V: Copy, N: Copy> LiveHeap<V, N> {
    /// Adds a block. Returns the one that was at its address: its free was lost.
    #[inline]
    pub fn allocate(&mut self, address: u64, size: u64, value: V) -> Result<Option<LiveBlock<V>>, Full> {
        self.blocks.insert(address, LiveBlock { size, value })
    }

    /// Removes the block at an address, and stores a note about it; `None` if there is none. A free of address 0 has no
    /// effect.
    #[inline]
    pub fn free(
        &mut self,
        thread: u32,
        address: u64,
        note: impl FnOnce(&LiveBlock<V>) -> N,
    ) -> Option<(LiveBlock<V>, N)> {
        if address == 0 {
            return None;
        }
        let freed = self.blocks.remove(address).map(|block| (block, note(&block)));
        self.store_free(thread, address, freed.map_or(Freed::Unknown, |(block, note)| Freed::Block(block, note)));
        freed
    }

    #[inline]
    fn store_free(&mut self, thread: u32, address: u64, freed: Freed<V, N>) {
        self.last_frees.of_mut(thread)[0] = LastFree { address, freed };
    }

    /// Adds a mapping. Returns what it replaces, and the mapping; `None` if it is empty, or if there is no memory for
    /// it.
    pub fn map(&mut self, address: u64, size: u64, value: V) -> (Vec<Cut<V>>, Option<MappingPart<V>>) {
        let replaced = self.ranges.cut(address, size, FreedEnd::Page);
        (replaced, self.ranges.insert(address, size, value))
    }

    /// Unmaps addresses: mappings, or parts of them. Stores a note about each, and returns them.
    pub fn unmap(
        &mut self,
        thread: u32,
        address: u64,
        size: u64,
        mut note: impl FnMut(&Cut<V>) -> N,
    ) -> Vec<(Cut<V>, N)> {
        let cuts = self.ranges.cut(address, size, FreedEnd::Page);
        let cuts: Vec<(Cut<V>, N)> = cuts.into_iter().map(|cut| (cut, note(&cut))).collect();
        if cuts.is_empty() {
            self.store_free(thread, address, Freed::Unknown);
        } else {
            self.store_free(thread, address, Freed::Ranges);
            self.last_cuts.insert(thread, cuts.clone());
        }
        cuts
    }

    /// Undoes the last free of a thread, at this address, because it failed. Memory whose addresses are used again
    /// stays freed.
    pub fn keep(&mut self, thread: u32, address: u64) -> Kept<V, N> {
        let last = &mut self.last_frees.of_mut(thread)[0];
        if last.address != address {
            return Kept::Nothing;
        }
        match mem::take(&mut last.freed) {
            Freed::Nothing => Kept::Nothing,
            Freed::Unknown => Kept::Unknown,
            Freed::Block(block, note) => {
                let is_back = self.blocks.get(address).is_none() && self.blocks.insert(address, block).is_ok();
                if is_back { Kept::Block(block, note) } else { Kept::Nothing }
            }
            Freed::Ranges => {
                let cuts = self.last_cuts.remove(&thread).unwrap_or_default();
                let restore = |(cut, note): (Cut<V>, N)| Some((cut, note, self.ranges.restore(cut.gone)?));
                Kept::Ranges(cuts.into_iter().filter_map(restore).collect())
            }
        }
    }

    /// Returns the block at an address.
    pub fn block(&self, address: u64) -> Option<LiveBlock<V>> {
        self.blocks.get(address)
    }

    /// Returns the part of a mapping that contains an address.
    pub fn range(&self, address: u64) -> Option<MappingPart<V>> {
        self.ranges.containing(address)
    }

    /// Returns the value of the part of a mapping with this start.
    pub fn range_value_mut(&mut self, start: u64) -> Option<&mut V> {
        self.ranges.value_mut(start)
    }

    /// Returns all blocks with their addresses, unsorted.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, LiveBlock<V>)> {
        self.blocks.iter()
    }

    /// Returns all parts of mappings by address.
    pub fn ranges(&self) -> impl Iterator<Item = &MappingPart<V>> {
        self.ranges.iter()
    }

    /// Changes all values and notes.
    pub fn update(&mut self, mut change: impl FnMut(&mut V), mut change_note: impl FnMut(&mut N)) {
        self.blocks.update_values(&mut change);
        self.ranges.update_values(&mut change);
        for last in self.last_frees.iter_mut() {
            if let Freed::Block(block, note) = &mut last.freed {
                change(&mut block.value);
                change_note(note);
            }
        }
        for (cut, note) in self.last_cuts.values_mut().flatten() {
            let left = cut.left.iter_mut().flatten();
            left.chain([&mut cut.before, &mut cut.gone]).for_each(|part| change(&mut part.value));
            change_note(note);
        }
    }

    /// Prefetches the data of a block, some events before they are needed.
    #[inline]
    pub(crate) fn prefetch(&self, address: u64) {
        self.blocks.prefetch(address);
    }

    /// Returns whether prefetching helps: not while all blocks are in the processor's caches.
    #[inline]
    pub(crate) fn gains_by_prefetch(&self) -> bool {
        !self.blocks.is_small()
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let cuts = self.last_cuts.values().map(|cuts| size_of_val(&**cuts) + 32).sum::<usize>();
        self.blocks.bytes_used() + self.ranges.bytes_used() + self.last_frees.bytes_used() + cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_replaced_at_its_address_and_address_0_is_never_freed() {
        let mut live: LiveHeap<char> = LiveHeap::default();
        assert_eq!(live.allocate(0x10, 8, 'a'), Ok(None));
        assert_eq!(live.allocate(0x10, 9, 'b'), Ok(Some(LiveBlock { size: 8, value: 'a' })));
        live.allocate(0, 1, 'z').unwrap();
        assert_eq!((live.free(1, 0, |_| ()), live.blocks().count()), (None, 2));
    }

    #[test]
    fn memory_of_a_failed_free_is_live_again_unless_its_address_is_used() {
        let mut live = LiveHeap::default();
        let block = LiveBlock { size: 8, value: 'a' };
        live.allocate(0x10, 8, 'a').unwrap();
        assert_eq!(live.free(5, 0x10, |block| block.size + 1), Some((block, 9)));
        assert_eq!((live.keep(6, 0x10), live.keep(5, 0x20)), (Kept::Nothing, Kept::Nothing));
        assert_eq!((live.keep(5, 0x10), live.block(0x10)), (Kept::Block(block, 9), Some(block)));
        assert_eq!(live.keep(5, 0x10), Kept::Nothing);
        live.free(5, 0x10, |_| 0);
        live.allocate(0x10, 99, 'b').unwrap();
        assert_eq!((live.keep(5, 0x10), live.block(0x10).map(|block| block.value)), (Kept::Nothing, Some('b')));
        assert_eq!((live.free(5, 0x50, |_| 0), live.keep(5, 0x50)), (None, Kept::Unknown));
    }

    #[test]
    fn values_and_notes_of_all_memory_change() {
        let mut live = LiveHeap::default();
        for address in [0x10, 0x20] {
            live.allocate(address, 8, 1).unwrap();
        }
        live.map(0x1000, 0x3000, 1);
        live.map(0x8000, 0x1000, 1);
        live.free(1, 0x10, |_| 10);
        live.unmap(2, 0x2000, 0x1000, |_| 10);
        live.update(|value| *value += 1, |note| *note += 1);
        let Kept::Block(block, note) = live.keep(1, 0x10) else { panic!("the block is not kept") };
        assert_eq!((block.value, note), (2, 11));
        let Kept::Ranges(ranges) = live.keep(2, 0x2000) else { panic!("the mapping is not kept") };
        let (cut, note, restored) = ranges[0];
        let values = [cut.before, cut.gone, restored.now].map(|part| part.value);
        assert_eq!((values, restored.now.size(), note), ([2; 3], 0x3000, 11));
        assert!(live.blocks().all(|(_, block)| block.value == 2) && live.ranges().all(|part| part.value == 2));
    }
}
