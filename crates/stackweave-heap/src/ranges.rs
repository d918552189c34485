//! Live mappings: ranges of addresses of which parts may be unmapped.
//!
//! Each piece that is left of a mapping is a block of its own.

use std::collections::BTreeMap;

use crate::places::PlaceId;
use crate::sampling::{Scale, Weight};

/// A piece of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// How long the whole mapping was.
    pub(crate) size: u64,
    pub(crate) place: PlaceId,
    /// Which mapping.
    pub(crate) mapping: u64,
    pub(crate) weight: Weight,
}

impl Range {
    /// What of it lies between two addresses.
    fn part(&self, start: u64, end: u64, scale: Scale) -> Option<Self> {
        let (start, end) = (self.start.max(start), self.end.min(end));
        (start < end).then(|| Self { start, end, weight: scale.weight_of_part(self.size, end - start), ..*self })
    }
}

/// What became of a piece of which something was unmapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) before: Range,
    pub(crate) gone: Range,
    pub(crate) left: [Option<Range>; 2],
}

/// The kernel maps whole pages, whatever the length.
const PAGE: u64 = 4096;

#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// By their starts.
    pieces: BTreeMap<u64, Range>,
}

impl Ranges {
    /// Removes what lies in these addresses, which end with a page.
    pub(crate) fn cut(&mut self, address: u64, size: u64, scale: Scale) -> Vec<Cut> {
        let end = address.saturating_add(size);
        let end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
        let mut cuts = Vec::new();
        while let Some(before) = self.first_in(address, end) {
            let Some(gone) = before.part(address, end, scale) else { break };
            self.pieces.remove(&before.start);
            let left = [before.part(0, address, scale), before.part(end, u64::MAX, scale)];
            for piece in left.iter().flatten() {
                self.pieces.insert(piece.start, *piece);
            }
            cuts.push(Cut { before, gone, left });
        }
        cuts
    }

    fn first_in(&self, start: u64, end: u64) -> Option<Range> {
        self.containing(start).or_else(|| self.pieces.range(start..end).next().map(|(_, piece)| *piece))
    }

    /// The piece that holds this address.
    pub(crate) fn containing(&self, address: u64) -> Option<Range> {
        let (_, piece) = self.pieces.range(..=address).next_back()?;
        (address < piece.end).then_some(*piece)
    }

    /// Adds a piece where there is none.
    pub(crate) fn insert(&mut self, piece: Range) {
        self.pieces.insert(piece.start, piece);
    }

    /// Puts a piece back, and joins it with those of the same mapping beside it. Returns these, and what is there now; `None` if
    /// something else is there.
    pub(crate) fn restore(&mut self, piece: Range, scale: Scale) -> Option<([Option<Range>; 2], Range)> {
        if self.first_in(piece.start, piece.end).is_some() {
            return None;
        }
        let is_same = |other: &Range| other.mapping == piece.mapping;
        let before = self.pieces.range(..piece.start).next_back().map(|(_, other)| *other);
        let before = before.filter(|other| other.end == piece.start).filter(is_same);
        let after = self.pieces.get(&piece.end).copied().filter(is_same);
        for other in [before, after].iter().flatten() {
            self.pieces.remove(&other.start);
        }
        let (start, end) =
            (before.map_or(piece.start, |other| other.start), after.map_or(piece.end, |other| other.end));
        let joined = Range { start, end, weight: scale.weight_of_part(piece.size, end - start), ..piece };
        self.insert(joined);
        Some(([before, after], joined))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range> {
        self.pieces.values()
    }

    /// Roughly: a map's nodes are half full at least.
    pub(crate) fn bytes_used(&self) -> usize {
        self.pieces.len() * size_of::<(u64, Range)>() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: fn() -> Scale = || Scale::new(None);

    fn piece(start: u64, end: u64) -> Range {
        let weight = Weight { blocks: 1, bytes: end - start };
        Range { start, end, size: 0x10_0000, place: PlaceId(1), mapping: 1, weight }
    }

    #[test]
    fn a_hole_leaves_two_pieces_and_putting_it_back_one() {
        let mut ranges = Ranges::default();
        ranges.insert(piece(0x1_0000, 0x2_0000));
        let cuts = ranges.cut(0x1_4000, 0x3ffe, EXACT());
        assert_eq!(cuts.len(), 1);
        assert_eq!(cuts[0].gone, piece(0x1_4000, 0x1_8000));
        assert_eq!(cuts[0].left, [Some(piece(0x1_0000, 0x1_4000)), Some(piece(0x1_8000, 0x2_0000))]);
        assert_eq!(ranges.containing(0x1_8000), Some(piece(0x1_8000, 0x2_0000)));
        assert_eq!(ranges.containing(0x1_5000), None);
        let (joined, now) = ranges.restore(cuts[0].gone, EXACT()).unwrap();
        assert_eq!((joined, now), (cuts[0].left, piece(0x1_0000, 0x2_0000)));
        assert!(ranges.restore(cuts[0].gone, EXACT()).is_none());
    }

    #[test]
    fn a_cut_goes_over_all_that_it_meets() {
        let mut ranges = Ranges::default();
        for start in [0x1000, 0x3000, 0x5000] {
            ranges.insert(piece(start, start + 0x1000));
        }
        let gone: Vec<Range> = ranges.cut(0, 0x5001, EXACT()).iter().map(|cut| cut.gone).collect();
        assert_eq!(gone, [0x1000, 0x3000, 0x5000].map(|start| piece(start, start + 0x1000)));
        assert_eq!(ranges.iter().count(), 0);
        assert!(ranges.cut(0, u64::MAX, EXACT()).is_empty());
    }
}
