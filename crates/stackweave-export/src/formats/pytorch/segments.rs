//! The segments of one device, with what lies in them at the end.

use std::collections::HashMap;
use std::io;

use crate::activity::LiveRange;
use crate::formats::pytorch::pickle::{Pickle, Shared};
use crate::formats::pytorch::stacks::Stacks;
use crate::formats::pytorch::trace::{Device, Origin, write_pool};
use stackweave_recording::events::Region;

/// `PyTorch`'s allocator has its small blocks in segments of this size.
const SMALL: u64 = 2 << 20;

pub(super) const fn is_large(size: u64) -> bool {
    size > SMALL
}

#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) origin: Origin,
    /// Sorted, next to each other, as long as the segment.
    pub(super) blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) state: BlockState,
    pub(super) origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockState {
    Allocated,
    /// The program has given it back, and a device still uses it.
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

/// What segments are written with.
pub(super) struct Writer<'w, 'o> {
    pub(super) pickle: &'w mut Pickle<'o>,
    pub(super) stacks: &'w mut Stacks,
    pub(super) pools: &'w mut HashMap<u64, Shared>,
}

impl Writer<'_, '_> {
    /// Writes the segments of the device at this place in the snapshot, in the order of their addresses.
    pub(super) fn write(&mut self, device: &Device, place: usize) -> io::Result<()> {
        let built;
        let segments = if let Some(whole) = &device.whole {
            whole
        } else {
            built = segments(device);
            &built
        };
        segments.iter().try_for_each(|segment| {
            self.pickle.item()?;
            self.segment(segment, place)
        })
    }

    fn segment(&mut self, segment: &Segment, place: usize) -> io::Result<()> {
        let active = || segment.blocks.iter().filter(|block| block.state != BlockState::Free);
        let allocated = active().filter(|block| block.state == BlockState::Allocated);
        self.pickle.begin_dictionary();
        let numbers = [
            ("device", place as u64),
            ("address", segment.address),
            ("total_size", segment.size),
            ("allocated_size", sum(allocated.map(|block| block.size))),
            ("active_size", sum(active().map(|block| block.size))),
            ("requested_size", sum(active().map(|block| block.origin.asked))),
            ("stream", segment.origin.stream),
        ];
        for (key, number) in numbers {
            self.pickle.text(key);
            self.pickle.unsigned(number);
        }
        self.pickle.text("segment_type");
        self.pickle.text(if segment.origin.is_large { "large" } else { "small" });
        self.pickle.text("segment_pool_id");
        write_pool(segment.origin.pool, self.pools, self.pickle);
        self.pickle.text("is_expandable");
        self.pickle.boolean(segment.origin.is_expandable);
        self.frames(segment.origin.stack)?;
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

    fn block(&mut self, block: &Block) -> io::Result<()> {
        let Block { address, size, state, origin } = *block;
        self.pickle.begin_dictionary();
        for (key, number) in [("address", address), ("size", size), ("requested_size", origin.asked)] {
            self.pickle.text(key);
            self.pickle.unsigned(number);
        }
        self.pickle.text("state");
        self.pickle.text(state.as_str());
        if origin.tag != 0 {
            self.pickle.text("user_metadata");
            self.pickle.text(self.stacks.name(origin.tag));
        }
        self.frames(origin.stack)?;
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

fn segments(device: &Device) -> Vec<Segment> {
    let (mut told, mut blocks) = (Vec::new(), Vec::new());
    for piece in device.live.pieces() {
        if device.is_segment(piece) {
            told.push((piece.address, piece.size, piece.value));
        }
        if !matches!(piece.region, Region::Segment(_)) {
            blocks.push(block(piece, BlockState::Allocated));
        }
    }
    blocks.extend(device.pending.values().map(|piece| block(piece, BlockState::Pending)));
    let of_cluster = |size| Origin { is_large: is_large(size), ..Origin::default() };
    told.extend(device.clusters.iter().map(|(address, size)| (address, size, of_cluster(size))));
    told.sort_unstable_by_key(|(address, _, _)| *address);
    told.dedup_by(|next, last| grows(last, next));
    blocks.sort_unstable_by_key(|block| block.address);
    let mut blocks = blocks.into_iter().peekable();
    let fill = |(address, size, origin): (u64, u64, Origin)| {
        let end = address.saturating_add(size);
        let mut inside = Vec::new();
        while let Some(block) = blocks.next_if(|block| block.address < end) {
            inside.push(block);
        }
        Segment { address, size, origin, blocks: filled(&inside, address, end) }
    };
    told.into_iter().map(fill).collect()
}

/// A segment that grows is one, however it has grown. Whether the next one was a part of the last one, which it is from now on.
fn grows(last: &mut (u64, u64, Origin), next: &(u64, u64, Origin)) -> bool {
    let (of, with) = (&last.2, &next.2);
    let is_part = with.is_expandable
        && last.0.checked_add(last.1) == Some(next.0)
        && (of.stream, of.pool) == (with.stream, with.pool);
    if is_part {
        last.1 = last.1.saturating_add(next.1);
        (last.2.is_large, last.2.is_expandable) = (of.is_large || with.is_large, true);
    }
    is_part
}

fn block(piece: &LiveRange<Origin>, state: BlockState) -> Block {
    Block { address: piece.address, size: piece.size, state, origin: piece.value }
}

/// Blocks, by their addresses, from `start` to `end` without a hole. A block that another one lies in ends there.
pub(super) fn filled(inside: &[Block], start: u64, end: u64) -> Vec<Block> {
    let mut blocks = Vec::with_capacity(inside.len());
    let mut at = start;
    let nothing = |address: u64, to: u64| Block {
        address,
        size: to - address,
        state: BlockState::Free,
        origin: Origin::default(),
    };
    let next_of = |place: usize| inside.get(place + 1).map_or(end, |next| next.address.min(end));
    for (place, block) in inside.iter().enumerate() {
        if !(at..end).contains(&block.address) {
            continue;
        }
        if block.address > at {
            blocks.push(nothing(at, block.address));
        }
        // What is empty takes a byte of the picture.
        let size = block.size.max(1).min(next_of(place) - block.address);
        let asked = block.origin.asked.min(size);
        blocks.push(Block { size, origin: Origin { asked, ..block.origin }, ..*block });
        at = block.address + size;
    }
    if at < end {
        blocks.push(nothing(at, end));
    }
    blocks
}

/// Returns a sum that stays at the greatest number.
fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_filled_to_its_end() {
        let block = |address, size| {
            let origin = Origin { asked: size, ..Origin::default() };
            Block { address, size, state: BlockState::Allocated, origin }
        };
        let blocks = filled(&[block(100, 10), block(110, 0), block(120, 50), block(130, 5)], 100, 200);
        let seen: Vec<_> = blocks
            .iter()
            .map(|block| (block.address, block.size, block.origin.asked, block.state == BlockState::Free))
            .collect();
        let expected = [
            (100, 10, 10, false),
            (110, 1, 0, false),
            (111, 9, 0, true),
            (120, 10, 10, false),
            (130, 5, 5, false),
            (135, 65, 0, true),
        ];
        assert_eq!(seen, expected);
        assert_eq!(filled(&[], 5, 9).len(), 1);
    }

    #[test]
    fn a_segment_grows_up_to_the_last_address() {
        let part = |address, size| (address, size, Origin { is_expandable: true, ..Origin::default() });
        let half = 1 << 63;
        let mut last = part(half, half);
        assert!(!grows(&mut last, &part(0, 1)), "there is nothing behind the last address");
        let mut last = part(0, half);
        assert!(grows(&mut last, &part(half, u64::MAX)) && last.1 == u64::MAX);
    }
}
