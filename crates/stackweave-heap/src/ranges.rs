//! Live mappings: address ranges that can be unmapped in parts.
//!
//! Each remaining part of a mapping is a separate block.

use std::collections::BTreeMap;

use crate::call_sites::CallSiteId;
use crate::sampling::{Scale, Weight};

/// A part of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The size of the whole mapping.
    pub(crate) size: u64,
    pub(crate) site: CallSiteId,
    /// The number of the mapping.
    pub(crate) mapping: u64,
    pub(crate) weight: Weight,
}

impl MappedRange {
    /// Returns the part between two addresses.
    fn part(&self, start: u64, end: u64, scale: Scale) -> Option<Self> {
        let (start, end) = (self.start.max(start), self.end.min(end));
        (start < end).then(|| Self { start, end, weight: scale.weight_of_part(self.size, end - start), ..*self })
    }
}

/// The result of unmapping addresses in a part of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) before: MappedRange,
    pub(crate) gone: MappedRange,
    pub(crate) left: [Option<MappedRange>; 2],
}

/// The kernel maps whole pages, whatever the length.
const PAGE: u64 = 4096;

#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// The parts by their start.
    parts: BTreeMap<u64, MappedRange>,
}

impl Ranges {
    /// Removes these addresses, up to the end of their last page.
    pub(crate) fn cut(&mut self, address: u64, size: u64, scale: Scale) -> Vec<Cut> {
        let end = address.saturating_add(size);
        let end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
        let mut cuts = Vec::new();
        while let Some(before) = self.first_in(address, end) {
            let Some(gone) = before.part(address, end, scale) else { break };
            self.parts.remove(&before.start);
            let left = [before.part(0, address, scale), before.part(end, u64::MAX, scale)];
            for part in left.iter().flatten() {
                self.parts.insert(part.start, *part);
            }
            cuts.push(Cut { before, gone, left });
        }
        cuts
    }

    fn first_in(&self, start: u64, end: u64) -> Option<MappedRange> {
        self.containing(start).or_else(|| self.parts.range(start..end).next().map(|(_, part)| *part))
    }

    /// Returns the part that contains this address.
    pub(crate) fn containing(&self, address: u64) -> Option<MappedRange> {
        let (_, part) = self.parts.range(..=address).next_back()?;
        (address < part.end).then_some(*part)
    }

    /// Adds a part where there is none.
    pub(crate) fn insert(&mut self, part: MappedRange) {
        self.parts.insert(part.start, part);
    }

    /// Restores a part, and joins it with adjacent parts of the same mapping. Returns these, and the joined part;
    /// `None` if the addresses are mapped again.
    pub(crate) fn restore(
        &mut self,
        part: MappedRange,
        scale: Scale,
    ) -> Option<([Option<MappedRange>; 2], MappedRange)> {
        if self.first_in(part.start, part.end).is_some() {
            return None;
        }
        let is_same = |other: &MappedRange| other.mapping == part.mapping;
        let before = self.parts.range(..part.start).next_back().map(|(_, other)| *other);
        let before = before.filter(|other| other.end == part.start).filter(is_same);
        let after = self.parts.get(&part.end).copied().filter(is_same);
        for other in [before, after].iter().flatten() {
            self.parts.remove(&other.start);
        }
        let (start, end) = (before.map_or(part.start, |other| other.start), after.map_or(part.end, |other| other.end));
        let joined = MappedRange { start, end, weight: scale.weight_of_part(part.size, end - start), ..part };
        self.insert(joined);
        Some(([before, after], joined))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &MappedRange> {
        self.parts.values()
    }

    /// Estimates the size: the nodes of a map are at least half full.
    pub(crate) fn bytes_used(&self) -> usize {
        self.parts.len() * size_of::<(u64, MappedRange)>() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: fn() -> Scale = || Scale::new(None);

    fn part(start: u64, end: u64) -> MappedRange {
        let weight = Weight { blocks: 1, bytes: end - start };
        MappedRange { start, end, size: 0x10_0000, site: CallSiteId(1), mapping: 1, weight }
    }

    #[test]
    fn a_hole_leaves_two_parts_and_restoring_it_joins_them() {
        let mut ranges = Ranges::default();
        ranges.insert(part(0x1_0000, 0x2_0000));
        let cuts = ranges.cut(0x1_4000, 0x3ffe, EXACT());
        assert_eq!(cuts.len(), 1);
        assert_eq!(cuts[0].gone, part(0x1_4000, 0x1_8000));
        assert_eq!(cuts[0].left, [Some(part(0x1_0000, 0x1_4000)), Some(part(0x1_8000, 0x2_0000))]);
        assert_eq!(ranges.containing(0x1_8000), Some(part(0x1_8000, 0x2_0000)));
        assert_eq!(ranges.containing(0x1_5000), None);
        let (joined, now) = ranges.restore(cuts[0].gone, EXACT()).unwrap();
        assert_eq!((joined, now), (cuts[0].left, part(0x1_0000, 0x2_0000)));
        assert!(ranges.restore(cuts[0].gone, EXACT()).is_none());
    }

    #[test]
    fn a_cut_covers_all_mappings_in_its_range() {
        let mut ranges = Ranges::default();
        for start in [0x1000, 0x3000, 0x5000] {
            ranges.insert(part(start, start + 0x1000));
        }
        let gone: Vec<MappedRange> = ranges.cut(0, 0x5001, EXACT()).iter().map(|cut| cut.gone).collect();
        assert_eq!(gone, [0x1000, 0x3000, 0x5000].map(|start| part(start, start + 0x1000)));
        assert_eq!(ranges.iter().count(), 0);
        assert!(ranges.cut(0, u64::MAX, EXACT()).is_empty());
    }
}
