//! The segments of one device, with their blocks at the end.

use std::collections::HashMap;
use std::io;

use crate::formats::pytorch::pickle::{MemoId, Pickle};
use crate::formats::pytorch::stacks::StackWriter;
use crate::formats::pytorch::trace::{AllocationInfo, SnapshotDevice, write_pool};
use stackweave_profile::memory::LiveRange;
use stackweave_recording::events::Region;

/// `PyTorch`'s allocator puts small blocks into segments of this size.
const SMALL_SEGMENT: u64 = 2 << 20;

pub(super) const fn is_large(size: u64) -> bool {
    size > SMALL_SEGMENT
}

#[derive(Clone, Debug)]
pub(super) struct SnapshotSegment {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) info: AllocationInfo,
    /// Sorted and without gaps, as long as the segment.
    pub(super) blocks: Vec<SnapshotBlock>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SnapshotBlock {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) state: BlockState,
    pub(super) info: AllocationInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockState {
    Allocated,
    /// The program has freed it, but a device still uses it.
    Pending,
    Free,
}

impl BlockState {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Allocated => "active_allocated",
            Self::Pending => "active_pending_free",
            Self::Free => "inactive",
        }
    }
}

/// Writes segments.
pub(super) struct SegmentWriter<'w, 'o> {
    pub(super) pickle: &'w mut Pickle<'o>,
    pub(super) stacks: &'w mut StackWriter,
    pub(super) pools: &'w mut HashMap<u64, MemoId>,
}

impl SegmentWriter<'_, '_> {
    /// Writes the segments of the device with this index in the snapshot, sorted by address.
    pub(super) fn write(&mut self, device: &SnapshotDevice, index: usize) -> io::Result<()> {
        let built;
        let segments = if let Some(listed) = &device.listed_segments {
            listed
        } else {
            built = segments(device);
            &built
        };
        segments.iter().try_for_each(|segment| {
            self.pickle.item()?;
            self.segment(segment, index)
        })
    }

    fn segment(&mut self, segment: &SnapshotSegment, index: usize) -> io::Result<()> {
        let active = || segment.blocks.iter().filter(|block| block.state != BlockState::Free);
        let allocated = active().filter(|block| block.state == BlockState::Allocated);
        self.pickle.begin_dictionary();
        let numbers = [
            ("device", index as u64),
            ("address", segment.address),
            ("total_size", segment.size),
            ("allocated_size", sum(allocated.map(|block| block.size))),
            ("active_size", sum(active().map(|block| block.size))),
            ("requested_size", sum(active().map(|block| block.info.requested))),
            ("stream", segment.info.stream),
        ];
        for (key, number) in numbers {
            self.pickle.text(key);
            self.pickle.unsigned(number);
        }
        self.pickle.text("segment_type");
        self.pickle.text(if segment.info.is_large { "large" } else { "small" });
        self.pickle.text("segment_pool_id");
        write_pool(segment.info.pool, self.pools, self.pickle);
        self.pickle.text("is_expandable");
        self.pickle.boolean(segment.info.is_expandable);
        self.frames(segment.info.stack)?;
        self.pickle.text("blocks");
        self.pickle.begin_list();
        for block in &segment.blocks {
            self.pickle.item()?;
            self.block(block)?;
        }
        self.pickle.end_list();
        self.pickle.end_dictionary();
        Ok(())
    }

    fn block(&mut self, block: &SnapshotBlock) -> io::Result<()> {
        let SnapshotBlock { address, size, state, info } = *block;
        self.pickle.begin_dictionary();
        for (key, number) in [("address", address), ("size", size), ("requested_size", info.requested)] {
            self.pickle.text(key);
            self.pickle.unsigned(number);
        }
        self.pickle.text("state");
        self.pickle.text(state.as_str());
        if info.tag != 0 {
            self.pickle.text("user_metadata");
            self.pickle.text(self.stacks.name(info.tag));
        }
        self.frames(info.stack)?;
        self.pickle.end_dictionary();
        Ok(())
    }

    fn frames(&mut self, stack: u32) -> io::Result<()> {
        self.pickle.text("frames");
        if stack == 0 {
            self.pickle.begin_list();
            self.pickle.end_list();
            return Ok(());
        }
        self.stacks.write(stack, self.pickle)
    }
}

fn segments(device: &SnapshotDevice) -> Vec<SnapshotSegment> {
    let (mut bounds, mut blocks) = (Vec::new(), Vec::new());
    for range in device.live.iter() {
        if device.is_segment(&range) {
            bounds.push((range.address, range.size, range.value));
        }
        if !matches!(range.region, Region::Segment(_)) {
            blocks.push(block(&range, BlockState::Allocated));
        }
    }
    blocks.extend(device.pending.values().map(|range| block(range, BlockState::Pending)));
    let inferred_info = |size| AllocationInfo { is_large: is_large(size), ..AllocationInfo::default() };
    bounds.extend(device.inferred.iter().map(|(address, size)| (address, size, inferred_info(size))));
    bounds.sort_unstable_by_key(|(address, _, _)| *address);
    bounds.dedup_by(|next, last| grows(last, next));
    blocks.sort_unstable_by_key(|block| block.address);
    let mut blocks = blocks.into_iter().peekable();
    let fill = |(address, size, info): (u64, u64, AllocationInfo)| {
        let end = address.saturating_add(size);
        let mut inside = Vec::new();
        while let Some(block) = blocks.next_if(|block| block.address < end) {
            inside.push(block);
        }
        SnapshotSegment { address, size, info, blocks: filled(&inside, address, end) }
    };
    bounds.into_iter().map(fill).collect()
}

/// Adds the next part to the last segment if an expandable segment has grown by it. Returns whether it has.
fn grows(last: &mut (u64, u64, AllocationInfo), next: &(u64, u64, AllocationInfo)) -> bool {
    let (last_info, next_info) = (&last.2, &next.2);
    let is_part = next_info.is_expandable
        && last.0.checked_add(last.1) == Some(next.0)
        && (last_info.stream, last_info.pool) == (next_info.stream, next_info.pool);
    if is_part {
        last.1 = last.1.saturating_add(next.1);
        (last.2.is_large, last.2.is_expandable) = (last_info.is_large || next_info.is_large, true);
    }
    is_part
}

fn block(range: &LiveRange<AllocationInfo>, state: BlockState) -> SnapshotBlock {
    SnapshotBlock { address: range.address, size: range.size, state, info: range.value }
}

/// Fills the gaps between sorted blocks from `start` to `end` with free blocks. A block that overlaps the next one is
/// cut.
pub(super) fn filled(inside: &[SnapshotBlock], start: u64, end: u64) -> Vec<SnapshotBlock> {
    let mut blocks = Vec::with_capacity(inside.len());
    let mut at = start;
    let free = |address: u64, to: u64| SnapshotBlock {
        address,
        size: to - address,
        state: BlockState::Free,
        info: AllocationInfo::default(),
    };
    let next_of = |index: usize| inside.get(index + 1).map_or(end, |next| next.address.min(end));
    for (index, block) in inside.iter().enumerate() {
        if !(at..end).contains(&block.address) {
            continue;
        }
        if block.address > at {
            blocks.push(free(at, block.address));
        }
        // An empty block takes one byte of the picture.
        let size = block.size.max(1).min(next_of(index) - block.address);
        let requested = block.info.requested.min(size);
        blocks.push(SnapshotBlock { size, info: AllocationInfo { requested, ..block.info }, ..*block });
        at = block.address + size;
    }
    if at < end {
        blocks.push(free(at, end));
    }
    blocks
}

/// Returns the sum, at most the greatest number.
fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_filled_to_its_end() {
        let block = |address, size| {
            let info = AllocationInfo { requested: size, ..AllocationInfo::default() };
            SnapshotBlock { address, size, state: BlockState::Allocated, info }
        };
        let blocks = filled(&[block(100, 10), block(110, 0), block(120, 50), block(130, 5)], 100, 200);
        let found: Vec<_> = blocks
            .iter()
            .map(|block| (block.address, block.size, block.info.requested, block.state == BlockState::Free))
            .collect();
        let expected = [
            (100, 10, 10, false),
            (110, 1, 0, false),
            (111, 9, 0, true),
            (120, 10, 10, false),
            (130, 5, 5, false),
            (135, 65, 0, true),
        ];
        assert_eq!(found, expected);
        assert_eq!(filled(&[], 5, 9).len(), 1);
    }

    #[test]
    fn a_segment_grows_up_to_the_last_address() {
        let part = |address, size| (address, size, AllocationInfo { is_expandable: true, ..AllocationInfo::default() });
        let half = 1 << 63;
        let mut last = part(half, half);
        assert!(!grows(&mut last, &part(0, 1)), "there is nothing after the last address");
        let mut last = part(0, half);
        assert!(grows(&mut last, &part(half, u64::MAX)) && last.1 == u64::MAX);
    }
}
