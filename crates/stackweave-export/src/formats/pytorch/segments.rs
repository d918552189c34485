//! The segments of one device, with what lies in them at the end.

use std::collections::HashMap;
use std::io;

use crate::activity::{Held, Piece};
use crate::formats::pytorch::pickle::{Pickle, Shared};
use crate::formats::pytorch::stacks::Stacks;
use crate::formats::pytorch::trace::{Device, Origin, write_pool};

/// `PyTorch`'s allocator has its small blocks in segments of this size.
const SMALL: u64 = 2 << 20;

#[derive(Debug)]
struct Segment {
    address: u64,
    size: u64,
    origin: Origin,
    /// Sorted, next to each other, as long as the segment.
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    address: u64,
    size: u64,
    /// What was asked for; `None` if nothing lies here.
    asked: Option<(u64, Origin)>,
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
        segments(device).iter().try_for_each(|segment| {
            self.pickle.item()?;
            self.segment(segment, place)
        })
    }

    fn segment(&mut self, segment: &Segment, place: usize) -> io::Result<()> {
        let taken = || segment.blocks.iter().filter(|block| block.asked.is_some());
        let active: u64 = taken().map(|block| block.size).sum();
        let asked: u64 = taken().filter_map(|block| block.asked).map(|(asked, _)| asked).sum();
        self.pickle.begin_dictionary();
        let numbers = [
            ("device", place as u64),
            ("address", segment.address),
            ("total_size", segment.size),
            ("allocated_size", active),
            ("active_size", active),
            ("requested_size", asked),
            ("stream", segment.origin.stream),
        ];
        for (key, number) in numbers {
            self.pickle.text(key);
            self.pickle.unsigned(number);
        }
        self.pickle.text("segment_type");
        self.pickle.text(if segment.size <= SMALL { "small" } else { "large" });
        self.pickle.text("segment_pool_id");
        write_pool(segment.origin.pool, self.pools, self.pickle);
        self.pickle.text("is_expandable");
        self.pickle.boolean(false);
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
        let asked = block.asked.map_or(0, |(asked, _)| asked);
        self.pickle.begin_dictionary();
        for (key, number) in [("address", block.address), ("size", block.size), ("requested_size", asked)] {
            self.pickle.text(key);
            self.pickle.unsigned(number);
        }
        self.pickle.text("state");
        self.pickle.text(if block.asked.is_some() { "active_allocated" } else { "inactive" });
        if let Some((_, origin)) = block.asked.filter(|(_, origin)| origin.tag != 0) {
            self.pickle.text("user_metadata");
            self.pickle.text(self.stacks.name(origin.tag));
        }
        self.frames(block.asked.map_or(0, |(_, origin)| origin.stack))?;
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
        if !matches!(piece.held, Held::Segment(_)) {
            blocks.push(*piece);
        }
    }
    told.extend(device.clusters.iter().map(|(address, size)| (address, size, Origin::default())));
    told.sort_unstable_by_key(|(address, _, _)| *address);
    blocks.sort_unstable_by_key(|piece| piece.address);
    let mut blocks = blocks.into_iter().peekable();
    let fill = |(address, size, origin): (u64, u64, Origin)| {
        let end = address.saturating_add(size);
        let mut inside = Vec::new();
        while let Some(piece) = blocks.next_if(|piece| piece.address < end) {
            inside.push(piece);
        }
        Segment { address, size, origin, blocks: filled(&inside, address, end) }
    };
    told.into_iter().map(fill).collect()
}

/// Blocks from `start` to `end` without a hole. A block that another one lies in ends there.
fn filled(pieces: &[Piece<Origin>], start: u64, end: u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = start;
    let nothing = |address: u64, to: u64| Block { address, size: to - address, asked: None };
    let next_of = |place: usize| pieces.get(place + 1).map_or(end, |next| next.address.min(end));
    for (place, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.address >= start) {
        if piece.address > at {
            blocks.push(nothing(at, piece.address));
        }
        // What is empty takes a byte of the picture.
        let size = piece.size.max(1).min(next_of(place) - piece.address);
        blocks.push(Block { address: piece.address, size, asked: Some((piece.size.min(size), piece.value)) });
        at = piece.address + size;
    }
    if at < end {
        blocks.push(nothing(at, end));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_filled_to_its_end() {
        let piece = |address, size| Piece { held: Held::Block(0), address, size, value: Origin::default() };
        let blocks = filled(&[piece(100, 10), piece(110, 0), piece(120, 50), piece(130, 5)], 100, 200);
        let seen: Vec<_> =
            blocks.iter().map(|block| (block.address, block.size, block.asked.map(|(asked, _)| asked))).collect();
        let expected = [
            (100, 10, Some(10)),
            (110, 1, Some(0)),
            (111, 9, None),
            (120, 10, Some(10)),
            (130, 5, Some(5)),
            (135, 65, None),
        ];
        assert_eq!(seen, expected);
        assert_eq!(filled(&[], 5, 9).len(), 1);
    }
}
