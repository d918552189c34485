//! The live memory while events are read in the order of time.

use std::collections::{BTreeMap, HashMap};

use stackweave_recording::events::{MemoryEvent, Region};

/// The live memory, with a value for each block and range.
#[derive(Debug)]
pub(crate) struct LiveMemory<T> {
    blocks: HashMap<(i64, u64), LiveRange<T>>,
    /// By region and first address. They do not overlap.
    ranges: HashMap<Region, BTreeMap<u64, LiveRange<T>>>,
    /// The address and the ranges of each thread's last free, which may have failed.
    last_freed: HashMap<u32, (u64, Vec<LiveRange<T>>)>,
}

/// A block, or a remaining part of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveRange<T> {
    pub(crate) region: Region,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) value: T,
}

impl<T> LiveRange<T> {
    /// Returns the first address after it.
    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

impl<T> Default for LiveMemory<T> {
    fn default() -> Self {
        Self { blocks: HashMap::new(), ranges: HashMap::new(), last_freed: HashMap::new() }
    }
}

impl<T: Copy> LiveMemory<T> {
    /// Allocates memory. Older memory at these addresses is freed, and is added to `gone`. If a range is freed in part,
    /// its other parts are added to `left`.
    pub(crate) fn allocate(
        &mut self,
        memory: &MemoryEvent,
        value: T,
        gone: &mut Vec<LiveRange<T>>,
        left: &mut Vec<LiveRange<T>>,
    ) {
        let MemoryEvent { region, address, size, .. } = *memory;
        let range = LiveRange { region, address, size, value };
        if region.is_range() {
            self.cut(region, (address, size), gone, left);
            self.ranges.entry(region).or_default().insert(address, range);
        } else {
            gone.extend(self.blocks.insert((region.device(), address), range));
        }
    }

    /// Frees memory, and adds it to `gone`. If a range is freed in part, the whole range is added to `gone`, and its
    /// other parts to `left`.
    pub(crate) fn free(
        &mut self,
        thread: u32,
        memory: &MemoryEvent,
        gone: &mut Vec<LiveRange<T>>,
        left: &mut Vec<LiveRange<T>>,
    ) {
        let before = gone.len();
        if memory.region.is_range() {
            self.cut(memory.region, (memory.address, memory.size), gone, left);
        } else {
            gone.extend(self.blocks.remove(&(memory.region.device(), memory.address)));
        }
        let (address, last) = self.last_freed.entry(thread).or_default();
        *address = memory.address;
        last.clear();
        last.extend_from_slice(&gone[before..]);
    }

    /// Undoes the last free of a thread, which failed: its memory is live again, and is added to `back`.
    pub(crate) fn keep(
        &mut self,
        thread: u32,
        address: u64,
        back: &mut Vec<LiveRange<T>>,
        gone: &mut Vec<LiveRange<T>>,
    ) {
        let Some((_, last)) = self.last_freed.remove(&thread).filter(|(freed, _)| *freed == address) else { return };
        for range in last {
            if range.region.is_range() {
                self.cut(range.region, (range.address, range.size), gone, &mut Vec::new());
                self.ranges.entry(range.region).or_default().insert(range.address, range);
            } else {
                gone.extend(self.blocks.insert((range.region.device(), range.address), range));
            }
            back.push(range);
        }
    }

    fn cut(
        &mut self,
        region: Region,
        (address, size): (u64, u64),
        gone: &mut Vec<LiveRange<T>>,
        left: &mut Vec<LiveRange<T>>,
    ) {
        let end = address.saturating_add(size);
        let Some(ranges) = self.ranges.get_mut(&region) else { return };
        while let Some((&start, &range)) = ranges.range(..end).next_back().filter(|(_, range)| range.end() > address) {
            ranges.remove(&start);
            gone.push(range);
            let before = LiveRange { size: address.saturating_sub(start), ..range };
            let after = LiveRange { address: end, size: range.end().saturating_sub(end), ..range };
            for rest in [before, after].into_iter().filter(|rest| rest.size > 0) {
                ranges.insert(rest.address, rest);
                left.push(rest);
            }
        }
    }

    /// Returns the range of this region that contains an address.
    pub(crate) fn range_at(&self, region: Region, address: u64) -> Option<&LiveRange<T>> {
        let (_, range) = self.ranges.get(&region)?.range(..=address).next_back()?;
        Some(range).filter(|range| address < range.end())
    }

    /// Returns the block of this device at an address.
    pub(crate) fn block_at(&self, device: i64, address: u64) -> Option<&LiveRange<T>> {
        self.blocks.get(&(device, address))
    }

    /// Returns all live blocks and ranges.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &LiveRange<T>> {
        self.blocks.values().chain(self.ranges.values().flat_map(BTreeMap::values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Region = Region::Block(-1);

    fn summary(ranges: &[LiveRange<char>]) -> Vec<(u64, u64, char)> {
        ranges.iter().map(|range| (range.address, range.size, range.value)).collect()
    }

    #[test]
    fn ranges_are_freed_in_parts_and_blocks_whole() {
        let mut live = LiveMemory::default();
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        live.allocate(&MemoryEvent::new(Region::Mapping, 0x1000, 0x4000), 'm', &mut gone, &mut left);
        live.allocate(&MemoryEvent::new(OWN, 0x1000, 64), 'b', &mut gone, &mut left);
        assert!(gone.is_empty() && left.is_empty());
        live.free(1, &MemoryEvent::new(Region::Mapping, 0x2000, 0x1000), &mut gone, &mut left);
        assert_eq!(summary(&gone), [(0x1000, 0x4000, 'm')]);
        assert_eq!(summary(&left), [(0x1000, 0x1000, 'm'), (0x3000, 0x2000, 'm')]);
        assert_eq!(live.range_at(Region::Mapping, 0x4fff).map(|range| range.address), Some(0x3000));
        assert_eq!(live.range_at(Region::Mapping, 0x2800), None);
        gone.clear();
        live.free(1, &MemoryEvent::new(OWN, 0x1000, 0), &mut gone, &mut left);
        live.free(1, &MemoryEvent::new(OWN, 0x1000, 0), &mut gone, &mut left);
        assert_eq!(summary(&gone), [(0x1000, 64, 'b')]);
        assert_eq!(live.iter().count(), 2);
    }

    #[test]
    fn an_allocation_frees_older_memory_at_its_address() {
        let mut live = LiveMemory::default();
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        live.allocate(&MemoryEvent::new(OWN, 0x10, 8), 'a', &mut gone, &mut left);
        live.allocate(&MemoryEvent::new(OWN, 0x10, 9), 'b', &mut gone, &mut left);
        live.allocate(&MemoryEvent::new(Region::Block(3), 0x10, 7), 'c', &mut gone, &mut left);
        assert_eq!(summary(&gone), [(0x10, 8, 'a')]);
        assert_eq!(live.iter().map(|range| range.size).sum::<u64>(), 16);
    }

    #[test]
    fn memory_of_a_failed_free_is_live_again() {
        let mut live = LiveMemory::default();
        let (mut gone, mut left, mut back) = (Vec::new(), Vec::new(), Vec::new());
        live.allocate(&MemoryEvent::new(OWN, 0x10, 8), 'a', &mut gone, &mut left);
        live.free(5, &MemoryEvent::new(OWN, 0x10, 0), &mut gone, &mut left);
        live.keep(6, 0x10, &mut back, &mut gone);
        assert_eq!((live.iter().count(), back.len()), (0, 0));
        live.keep(5, 0x10, &mut back, &mut gone);
        assert_eq!((summary(&back), live.iter().count()), (vec![(0x10, 8, 'a')], 1));
        live.keep(5, 0x10, &mut back, &mut gone);
        assert_eq!(back.len(), 1);
    }
}
