//! The live memory of a process and its devices, changed by events in the order of time.
//!
//! The rules are those of [`LiveHeap`], as in the ledger. Segments are ranges of a device that contain its blocks.

use std::collections::BTreeMap;

use stackweave_core::EventKind;
use stackweave_heap::{Cut, FreedEnd, Kept, LiveBlock, LiveHeap, LiveRanges, MappingPart};
use stackweave_recording::events::{MemoryEvent, Region};

/// The live memory of a process and its devices, with a value for each block and range.
#[derive(Debug)]
pub struct LiveDevices<V> {
    devices: BTreeMap<i64, LiveDevice<V>>,
}

#[derive(Debug)]
struct LiveDevice<V> {
    heap: LiveHeap<V>,
    segments: LiveRanges<V>,
}

/// A block, or a remaining part of a mapping or segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRange<V> {
    /// The kind of memory.
    pub region: Region,
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The size of the whole mapping or segment.
    pub whole: u64,
    /// The value that was stored with it.
    pub value: V,
}

/// The changes by an event.
#[derive(Debug)]
pub struct LiveChanges<V> {
    /// The memory that is not live any more. Of a range that was freed in part, this is the whole range.
    pub gone: Vec<LiveRange<V>>,
    /// The memory that is newly live: an allocation, or the rest of such a range.
    pub come: Vec<LiveRange<V>>,
    /// The memory that was freed, or that is live again since a free had failed, without what was live throughout.
    pub freed: Vec<LiveRange<V>>,
}

impl<V> Default for LiveDevices<V> {
    fn default() -> Self {
        Self { devices: BTreeMap::new() }
    }
}

impl<V> Default for LiveDevice<V> {
    fn default() -> Self {
        Self { heap: LiveHeap::default(), segments: LiveRanges::default() }
    }
}

impl<V> Default for LiveChanges<V> {
    fn default() -> Self {
        Self { gone: Vec::new(), come: Vec::new(), freed: Vec::new() }
    }
}

impl<V: Copy> LiveRange<V> {
    /// Creates a block or a whole range.
    pub const fn new(region: Region, address: u64, size: u64, value: V) -> Self {
        Self { region, address, size, whole: size, value }
    }

    const fn of_block(device: i64, address: u64, block: LiveBlock<V>) -> Self {
        Self::new(Region::Block(device), address, block.size, block.value)
    }

    const fn of_part(region: Region, part: &MappingPart<V>) -> Self {
        Self { region, address: part.start, size: part.size(), whole: part.whole, value: part.value }
    }
}

impl<V: Copy> LiveChanges<V> {
    /// Removes all changes.
    pub fn clear(&mut self) {
        self.gone.clear();
        self.come.clear();
        self.freed.clear();
    }

    fn add_free(&mut self, range: Option<LiveRange<V>>) {
        self.gone.extend(range);
        self.freed.extend(range);
    }

    fn add_cuts<'c>(&mut self, region: Region, cuts: impl IntoIterator<Item = &'c Cut<V>>)
    where
        V: 'c,
    {
        for cut in cuts {
            self.gone.push(LiveRange::of_part(region, &cut.before));
            self.freed.push(LiveRange::of_part(region, &cut.gone));
            self.come.extend(cut.left.iter().flatten().map(|part| LiveRange::of_part(region, part)));
        }
    }
}

impl<V: Copy> LiveDevices<V> {
    fn device(&mut self, number: i64) -> &mut LiveDevice<V> {
        self.devices.entry(number).or_default()
    }

    /// Allocates memory, and frees older memory at its addresses. Adds the changes.
    pub fn allocate(&mut self, memory: &MemoryEvent, value: V, changes: &mut LiveChanges<V>) {
        let MemoryEvent { region, address, size, .. } = *memory;
        let device = self.device(region.device());
        let (cuts, part) = match region {
            Region::Block(number) => {
                // A block for which there is no memory is not live.
                let Ok(old) = device.heap.allocate(address, size, value) else { return };
                changes.add_free(old.map(|old| LiveRange::of_block(number, address, old)));
                return changes.come.push(LiveRange::new(region, address, size, value));
            }
            Region::Mapping => device.heap.map(address, size, value),
            Region::Segment(_) => {
                let cuts = device.segments.cut(address, size, FreedEnd::Exact);
                (cuts, device.segments.insert(address, size, value))
            }
        };
        changes.add_cuts(region, &cuts);
        changes.come.extend(part.map(|part| LiveRange::of_part(region, &part)));
    }

    /// Frees memory. A segment without a size is freed whole. Adds the changes.
    pub fn free(&mut self, thread: u32, memory: &MemoryEvent, changes: &mut LiveChanges<V>) {
        let MemoryEvent { region, address, size, .. } = *memory;
        let device = self.device(region.device());
        match region {
            Region::Block(number) => {
                let block = device.heap.free(thread, address, |_| ());
                changes.add_free(block.map(|(block, ())| LiveRange::of_block(number, address, block)));
            }
            Region::Mapping => {
                let cuts = device.heap.unmap(thread, address, size, |_| ());
                changes.add_cuts(region, cuts.iter().map(|(cut, ())| cut));
            }
            Region::Segment(_) => {
                let whole = || device.segments.containing(address).filter(|segment| segment.start == address);
                let size = if size > 0 { size } else { whole().map_or(0, |segment| segment.size()) };
                changes.add_cuts(region, &device.segments.cut(address, size, FreedEnd::Exact));
            }
        }
    }

    /// Undoes the last free of a thread, at this address, because it failed. Adds the changes.
    pub fn keep(&mut self, thread: u32, address: u64, changes: &mut LiveChanges<V>) {
        let number = EventKind::OWN_DEVICE;
        match self.device(number).heap.keep(thread, address) {
            Kept::Nothing | Kept::Unknown => {}
            Kept::Block(block, ()) => {
                let block = LiveRange::of_block(number, address, block);
                changes.come.push(block);
                changes.freed.push(block);
            }
            Kept::Ranges(restored) => {
                let part = |part: &MappingPart<V>| LiveRange::of_part(Region::Mapping, part);
                for (cut, (), restored) in &restored {
                    changes.gone.extend(restored.joined.iter().flatten().map(part));
                    changes.come.push(part(&restored.now));
                    changes.freed.push(part(&cut.gone));
                }
            }
        }
    }

    /// Returns the mapping or segment that contains an address.
    pub fn range_at(&self, region: Region, address: u64) -> Option<LiveRange<V>> {
        let device = self.devices.get(&region.device())?;
        let part = match region {
            Region::Segment(_) => device.segments.containing(address),
            Region::Block(_) | Region::Mapping => device.heap.range(address),
        };
        part.map(|part| LiveRange::of_part(region, &part))
    }

    /// Returns the block of a device at an address.
    pub fn block_at(&self, device: i64, address: u64) -> Option<LiveRange<V>> {
        let block = self.devices.get(&device)?.heap.block(address);
        block.map(|block| LiveRange::of_block(device, address, block))
    }

    /// Returns all live memory, unsorted.
    pub fn iter(&self) -> impl Iterator<Item = LiveRange<V>> {
        self.devices.iter().flat_map(|(number, device)| {
            let blocks = device.heap.blocks();
            let mappings = device.heap.ranges().map(|part| LiveRange::of_part(Region::Mapping, part));
            let segments = device.segments.iter().map(|part| LiveRange::of_part(Region::Segment(*number), part));
            let blocks = blocks.map(|(address, block)| LiveRange::of_block(*number, address, block));
            blocks.chain(mappings).chain(segments)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Region = Region::Block(EventKind::OWN_DEVICE);

    fn summary(ranges: &[LiveRange<char>]) -> Vec<(u64, u64, char)> {
        ranges.iter().map(|range| (range.address, range.size, range.value)).collect()
    }

    #[test]
    fn ranges_are_freed_in_parts_and_blocks_whole() {
        let (mut live, mut changes) = (LiveDevices::default(), LiveChanges::default());
        live.allocate(&MemoryEvent::new(Region::Mapping, 0x1000, 0x4000), 'm', &mut changes);
        live.allocate(&MemoryEvent::new(OWN, 0x1000, 64), 'b', &mut changes);
        assert_eq!(summary(&changes.come), [(0x1000, 0x4000, 'm'), (0x1000, 64, 'b')]);
        assert!(changes.gone.is_empty() && changes.freed.is_empty());
        changes.clear();
        live.free(1, &MemoryEvent::new(Region::Mapping, 0x2000, 0xf00), &mut changes);
        assert_eq!(summary(&changes.gone), [(0x1000, 0x4000, 'm')]);
        assert_eq!(summary(&changes.freed), [(0x2000, 0x1000, 'm')]);
        assert_eq!(summary(&changes.come), [(0x1000, 0x1000, 'm'), (0x3000, 0x2000, 'm')]);
        assert!(changes.come.iter().all(|range| range.whole == 0x4000));
        assert_eq!(live.range_at(Region::Mapping, 0x4fff).map(|range| range.address), Some(0x3000));
        assert_eq!(live.range_at(Region::Mapping, 0x2800), None);
        changes.clear();
        live.free(1, &MemoryEvent::new(OWN, 0x1000, 0), &mut changes);
        live.free(1, &MemoryEvent::new(OWN, 0x1000, 0), &mut changes);
        assert_eq!(
            (summary(&changes.gone), summary(&changes.freed)),
            (vec![(0x1000, 64, 'b')], vec![(0x1000, 64, 'b')])
        );
        assert_eq!(live.iter().count(), 2);
    }

    #[test]
    fn devices_and_segments_have_their_own_addresses() {
        let (mut live, mut changes) = (LiveDevices::default(), LiveChanges::default());
        for (region, size) in
            [(OWN, 8), (Region::Block(3), 7), (Region::Segment(3), 0x100), (Region::Segment(4), 0x100)]
        {
            live.allocate(&MemoryEvent::new(region, 0x10, size), 'a', &mut changes);
        }
        assert!(changes.gone.is_empty());
        live.allocate(&MemoryEvent::new(OWN, 0x10, 9), 'b', &mut changes);
        assert_eq!(summary(&changes.gone), [(0x10, 8, 'a')]);
        live.free(1, &MemoryEvent::new(Region::Segment(4), 0x20, 0x10), &mut changes);
        live.free(1, &MemoryEvent::new(Region::Segment(4), 0x10, 0), &mut changes);
        assert_eq!(summary(&changes.freed[1..]), [(0x20, 0x10, 'a'), (0x10, 0x10, 'a')]);
        assert_eq!(live.block_at(3, 0x10).map(|range| range.size), Some(7));
        assert_eq!(live.iter().map(|range| range.size).sum::<u64>(), 9 + 7 + 0x100 + 0xe0);
    }

    #[test]
    fn a_range_whose_free_failed_is_whole_again() {
        let (mut live, mut changes) = (LiveDevices::default(), LiveChanges::default());
        live.allocate(&MemoryEvent::new(Region::Mapping, 0x1000, 0x3000), 'm', &mut changes);
        live.free(5, &MemoryEvent::new(Region::Mapping, 0x2000, 0x1000), &mut changes);
        changes.clear();
        live.keep(6, 0x2000, &mut changes);
        assert!(changes.come.is_empty());
        live.keep(5, 0x2000, &mut changes);
        assert_eq!(summary(&changes.gone), [(0x1000, 0x1000, 'm'), (0x3000, 0x1000, 'm')]);
        assert_eq!(summary(&changes.come), [(0x1000, 0x3000, 'm')]);
        assert_eq!(summary(&changes.freed), [(0x2000, 0x1000, 'm')]);
    }
}
