//! Which memory is live, while events are read in the order of their times.

use std::collections::{BTreeMap, HashMap};

use stackweave_recording::events::{MemoryEvent, Region};

/// The memory that is live, with what whoever reads has to remember of each piece.
#[derive(Debug)]
pub(crate) struct LiveMemory<T> {
    blocks: HashMap<(i64, u64), LiveRange<T>>,
    /// By kind and first address. They do not overlap.
    ranges: HashMap<Region, BTreeMap<u64, LiveRange<T>>>,
    /// What each thread freed last: the call may have failed.
    freed: HashMap<u32, (u64, Vec<LiveRange<T>>)>,
}

/// A block, or what is left of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveRange<T> {
    pub(crate) region: Region,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) value: T,
}

impl<T> LiveRange<T> {
    /// The first address behind it.
    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

impl<T> Default for LiveMemory<T> {
    fn default() -> Self {
        Self { blocks: HashMap::new(), ranges: HashMap::new(), freed: HashMap::new() }
    }
}

impl<T: Copy> LiveMemory<T> {
    /// Memory is allocated. What was there before is freed by that, and added to `gone`; what is left of it, where it was a
    /// range, to `left`.
    pub(crate) fn allocate(
        &mut self,
        memory: &MemoryEvent,
        value: T,
        gone: &mut Vec<LiveRange<T>>,
        left: &mut Vec<LiveRange<T>>,
    ) {
        let MemoryEvent { region, address, size, .. } = *memory;
        let piece = LiveRange { region, address, size, value };
        if region.is_range() {
            self.cut(region, (address, size), gone, left);
            self.ranges.entry(region).or_default().insert(address, piece);
        } else {
            gone.extend(self.blocks.insert((region.device(), address), piece));
        }
    }

    /// Memory is freed: what was known of it is added to `gone`, what is left of ranges that were freed in part to `left`.
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
        let (address, last) = self.freed.entry(thread).or_default();
        *address = memory.address;
        last.clear();
        last.extend_from_slice(&gone[before..]);
    }

    /// What a thread freed last is not freed after all: it is live again, and added to `back`.
    pub(crate) fn keep(
        &mut self,
        thread: u32,
        address: u64,
        back: &mut Vec<LiveRange<T>>,
        gone: &mut Vec<LiveRange<T>>,
    ) {
        let Some((_, last)) = self.freed.remove(&thread).filter(|(of, _)| *of == address) else { return };
        for piece in last {
            if piece.region.is_range() {
                self.cut(piece.region, (piece.address, piece.size), gone, &mut Vec::new());
                self.ranges.entry(piece.region).or_default().insert(piece.address, piece);
            } else {
                gone.extend(self.blocks.insert((piece.region.device(), piece.address), piece));
            }
            back.push(piece);
        }
    }

    fn cut(
        &mut self,
        of: Region,
        (address, size): (u64, u64),
        gone: &mut Vec<LiveRange<T>>,
        left: &mut Vec<LiveRange<T>>,
    ) {
        let end = address.saturating_add(size);
        let Some(ranges) = self.ranges.get_mut(&of) else { return };
        while let Some((&start, &piece)) = ranges.range(..end).next_back().filter(|(_, piece)| piece.end() > address) {
            ranges.remove(&start);
            gone.push(piece);
            let before = LiveRange { size: address.saturating_sub(start), ..piece };
            let behind = LiveRange { address: end, size: piece.end().saturating_sub(end), ..piece };
            for rest in [before, behind].into_iter().filter(|rest| rest.size > 0) {
                ranges.insert(rest.address, rest);
                left.push(rest);
            }
        }
    }

    /// The range of this kind that an address is in.
    pub(crate) fn range_at(&self, of: Region, address: u64) -> Option<&LiveRange<T>> {
        let (_, piece) = self.ranges.get(&of)?.range(..=address).next_back()?;
        Some(piece).filter(|piece| address < piece.end())
    }

    /// The block of this device that begins at an address.
    pub(crate) fn block_at(&self, device: i64, address: u64) -> Option<&LiveRange<T>> {
        self.blocks.get(&(device, address))
    }

    /// All that is live.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &LiveRange<T>> {
        self.blocks.values().chain(self.ranges.values().flat_map(BTreeMap::values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Region = Region::Block(-1);

    fn places(pieces: &[LiveRange<char>]) -> Vec<(u64, u64, char)> {
        pieces.iter().map(|piece| (piece.address, piece.size, piece.value)).collect()
    }

    #[test]
    fn ranges_are_freed_in_parts_and_blocks_whole() {
        let mut live = LiveMemory::default();
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        live.allocate(&MemoryEvent::new(Region::Mapping, 0x1000, 0x4000), 'm', &mut gone, &mut left);
        live.allocate(&MemoryEvent::new(OWN, 0x1000, 64), 'b', &mut gone, &mut left);
        assert!(gone.is_empty() && left.is_empty());
        live.free(1, &MemoryEvent::new(Region::Mapping, 0x2000, 0x1000), &mut gone, &mut left);
        assert_eq!(places(&gone), [(0x1000, 0x4000, 'm')]);
        assert_eq!(places(&left), [(0x1000, 0x1000, 'm'), (0x3000, 0x2000, 'm')]);
        assert_eq!(live.range_at(Region::Mapping, 0x4fff).map(|piece| piece.address), Some(0x3000));
        assert_eq!(live.range_at(Region::Mapping, 0x2800), None);
        gone.clear();
        live.free(1, &MemoryEvent::new(OWN, 0x1000, 0), &mut gone, &mut left);
        live.free(1, &MemoryEvent::new(OWN, 0x1000, 0), &mut gone, &mut left);
        assert_eq!(places(&gone), [(0x1000, 64, 'b')]);
        assert_eq!(live.pieces().count(), 2);
    }

    #[test]
    fn what_is_allocated_in_the_place_of_another_frees_it() {
        let mut live = LiveMemory::default();
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        live.allocate(&MemoryEvent::new(OWN, 0x10, 8), 'a', &mut gone, &mut left);
        live.allocate(&MemoryEvent::new(OWN, 0x10, 9), 'b', &mut gone, &mut left);
        live.allocate(&MemoryEvent::new(Region::Block(3), 0x10, 7), 'c', &mut gone, &mut left);
        assert_eq!(places(&gone), [(0x10, 8, 'a')]);
        assert_eq!(live.pieces().map(|piece| piece.size).sum::<u64>(), 16);
    }

    #[test]
    fn what_was_kept_is_there_again() {
        let mut live = LiveMemory::default();
        let (mut gone, mut left, mut back) = (Vec::new(), Vec::new(), Vec::new());
        live.allocate(&MemoryEvent::new(OWN, 0x10, 8), 'a', &mut gone, &mut left);
        live.free(5, &MemoryEvent::new(OWN, 0x10, 0), &mut gone, &mut left);
        live.keep(6, 0x10, &mut back, &mut gone);
        assert_eq!((live.pieces().count(), back.len()), (0, 0));
        live.keep(5, 0x10, &mut back, &mut gone);
        assert_eq!((places(&back), live.pieces().count()), (vec![(0x10, 8, 'a')], 1));
        live.keep(5, 0x10, &mut back, &mut gone);
        assert_eq!(back.len(), 1);
    }
}
