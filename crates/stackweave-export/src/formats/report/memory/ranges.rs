//! Mappings, which may be given back in parts. Each piece that is left of one is a block.

use std::collections::BTreeMap;

use super::live::{Block, Now, of_blocks, of_bytes};

/// The kernel maps whole pages, whatever length it is told.
const PAGE: u64 = 4096;

#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// By their starts. They do not overlap.
    pieces: BTreeMap<u64, Piece>,
    mappings: u64,
}

/// A piece of a mapping.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    /// The whole mapping, and its number.
    block: Block,
    mapping: u64,
    /// The first moment at which the piece is counted as a block. Its bytes are there since the mapping is.
    first_as_block: u8,
}

/// What was given back of a mapping, to be put back if need be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapped {
    piece: Piece,
    /// Whether nothing of its piece was left.
    is_whole: bool,
    /// How many moments had passed.
    passed: u8,
}

impl Piece {
    fn part(&self, start: u64, end: u64) -> Option<Self> {
        let (start, end) = (self.start.max(start), self.end.min(end));
        (start < end).then_some(Self { start, end, ..*self })
    }

    fn bytes(&self, now: &Now<'_>) -> u64 {
        now.scale.weight(self.block.size, self.end - self.start).bytes
    }

    /// Its rows: it has gone, and was a block of its own if `is_whole`.
    fn lose(&self, is_whole: bool, now: &mut Now<'_>) {
        if self.block.is_wanted {
            let weight = now.scale.weight(self.block.size, self.end - self.start);
            now.rows.add(now.stay(self.block.stack, self.block.first), of_bytes(weight));
            if is_whole {
                now.rows.add(now.stay(self.block.stack, self.first_as_block), of_blocks(weight));
            }
        }
    }
}

impl Ranges {
    pub(super) fn insert(&mut self, address: u64, block: Block) {
        self.mappings += 1;
        let (end, mapping) = (address.saturating_add(block.size), self.mappings);
        self.pieces.insert(address, Piece { start: address, end, block, mapping, first_as_block: block.first });
    }

    /// Gives back what lies in these addresses, which end with a page: the weight of its bytes, and the pieces.
    pub(super) fn cut(&mut self, address: u64, size: u64, now: &mut Now<'_>) -> (u64, Vec<Mapped>) {
        let end = address.saturating_add(size);
        let end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
        let (mut bytes, mut gone) = (0_u64, Vec::new());
        while let Some(before) = self.first_in(address, end) {
            let Some(piece) = before.part(address, end) else { break };
            self.pieces.remove(&before.start);
            let left = [before.part(0, address), before.part(end, u64::MAX)];
            let is_whole = left.iter().all(Option::is_none);
            bytes = bytes.saturating_add(before.bytes(now));
            for (number, left) in left.into_iter().flatten().enumerate() {
                bytes = bytes.saturating_sub(left.bytes(now));
                let first_as_block = if number == 0 { before.first_as_block } else { now.passed };
                self.pieces.insert(left.start, Piece { first_as_block, ..left });
            }
            piece.lose(is_whole, now);
            gone.push(Mapped { piece, is_whole, passed: now.passed });
        }
        (bytes, gone)
    }

    fn first_in(&self, start: u64, end: u64) -> Option<Piece> {
        let containing = self.pieces.range(..=start).next_back().filter(|(_, piece)| start < piece.end);
        containing.or_else(|| self.pieces.range(start..end).next()).map(|(_, piece)| *piece)
    }

    /// Puts a piece back where nothing else is, and joins it with those of its mapping beside it: the weight of its bytes.
    pub(super) fn restore(&mut self, mapped: &Mapped, now: &mut Now<'_>) -> u64 {
        let Mapped { mut piece, is_whole, passed } = *mapped;
        if self.first_in(piece.start, piece.end).is_some() {
            return 0;
        }
        let bytes = piece.bytes(now);
        if piece.block.is_wanted {
            let weight = now.scale.weight(piece.block.size, piece.end - piece.start);
            let stay = |first| super::rows::Stay { behind: passed, ..now.stay(piece.block.stack, first) };
            let (as_bytes, as_block) = (stay(piece.block.first), stay(piece.first_as_block));
            now.rows.take_back(as_bytes, of_bytes(weight));
            if is_whole {
                now.rows.take_back(as_block, of_blocks(weight));
            }
        }
        let before = self.pieces.range(..piece.start).next_back().map(|(_, other)| *other);
        let before = before.filter(|other| other.end == piece.start);
        let after = self.pieces.get(&piece.end).copied();
        for other in [before, after].into_iter().flatten().filter(|other| other.mapping == piece.mapping) {
            self.pieces.remove(&other.start);
            (piece.start, piece.end) = (piece.start.min(other.start), piece.end.max(other.end));
            piece.first_as_block = piece.first_as_block.min(other.first_as_block);
        }
        self.pieces.insert(piece.start, piece);
        bytes
    }

    pub(super) fn finish(&self, now: &mut Now<'_>) {
        self.pieces.values().for_each(|piece| piece.lose(true, now));
    }

    /// Moments have these places now.
    pub(super) fn move_to(&mut self, places: &[u8]) {
        self.pieces.values_mut().for_each(|piece| piece.move_to(places));
    }
}

impl Piece {
    fn move_to(&mut self, places: &[u8]) {
        for place in [&mut self.block.first, &mut self.first_as_block] {
            *place = places.get(usize::from(*place)).copied().unwrap_or(*place);
        }
    }
}

impl Mapped {
    pub(super) fn move_to(&mut self, places: &[u8]) {
        self.piece.move_to(places);
        self.passed = places.get(usize::from(self.passed)).copied().unwrap_or(self.passed);
    }
}
