//! Live mappings and segments: address ranges that can be freed in parts.
//!
//! Each remaining part of a mapping is a separate range.

use std::collections::BTreeMap;

/// A live part of a mapping, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingPart<V> {
    /// The first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// The size of the whole mapping.
    pub whole: u64,
    /// The number of the mapping.
    pub mapping: u64,
    /// The value that was stored with the mapping.
    pub value: V,
}

impl<V: Copy> MappingPart<V> {
    /// Returns the number of bytes.
    pub const fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Returns the part between two addresses.
    fn within(&self, start: u64, end: u64) -> Option<Self> {
        let (start, end) = (self.start.max(start), self.end.min(end));
        (start < end).then_some(Self { start, end, ..*self })
    }
}

/// The result of freeing addresses in a part of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut<V> {
    /// The part.
    pub before: MappingPart<V>,
    /// The freed part.
    pub gone: MappingPart<V>,
    /// The parts that are left before and after the freed addresses.
    pub left: [Option<MappingPart<V>>; 2],
}

impl<V> Cut<V> {
    /// Returns whether nothing is left of the part.
    pub const fn is_whole(&self) -> bool {
        matches!(self.left, [None, None])
    }
}

/// The result of restoring freed addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored<V> {
    /// The adjacent parts of the mapping before.
    pub joined: [Option<MappingPart<V>>; 2],
    /// The freed addresses together with these parts.
    pub now: MappingPart<V>,
}

/// Where freed addresses end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreedEnd {
    /// At the end of a page: the kernel unmaps whole pages, whatever the length.
    Page,
    /// After the length.
    Exact,
}

const PAGE: u64 = 4096;

/// Live address ranges, with a value for each. They do not overlap.
#[derive(Debug)]
pub struct LiveRanges<V> {
    /// The parts by their start.
    parts: BTreeMap<u64, MappingPart<V>>,
    /// The number of mappings so far.
    mappings: u64,
}

impl<V> Default for LiveRanges<V> {
    fn default() -> Self {
        Self { parts: BTreeMap::new(), mappings: 0 }
    }
}

impl<V: Copy> LiveRanges<V> {
    /// Adds a mapping where there is none, and returns it; `None` if it is empty, or if there is no memory for it.
    pub fn insert(&mut self, address: u64, size: u64, value: V) -> Option<MappingPart<V>> {
        let end = address.saturating_add(size);
        if address == end || !Self::has_memory() {
            return None;
        }
        self.mappings += 1;
        let part = MappingPart { start: address, end, whole: size, mapping: self.mappings, value };
        self.parts.insert(address, part);
        Some(part)
    }

    /// Returns whether a part can be stored. The map has no fallible insert, so this reserves as much memory as it
    /// needs at most.
    fn has_memory() -> bool {
        Vec::<u8>::new().try_reserve_exact(4096.max(16 * size_of::<MappingPart<V>>())).is_ok()
    }

    /// Frees these addresses. Returns what has changed in each part.
    pub fn cut(&mut self, address: u64, size: u64, edge: FreedEnd) -> Vec<Cut<V>> {
        let exact = address.saturating_add(size);
        let end = match edge {
            FreedEnd::Page => exact.checked_next_multiple_of(PAGE).unwrap_or(exact),
            FreedEnd::Exact => exact,
        };
        let mut cuts = Vec::new();
        while let Some(before) = self.first_in(address, end) {
            let Some(gone) = before.within(address, end) else { break };
            self.parts.remove(&before.start);
            let left = [before.within(0, address), before.within(end, u64::MAX)];
            for part in left.iter().flatten() {
                self.parts.insert(part.start, *part);
            }
            cuts.push(Cut { before, gone, left });
        }
        cuts
    }

    fn first_in(&self, start: u64, end: u64) -> Option<MappingPart<V>> {
        self.containing(start).or_else(|| self.parts.range(start..end).next().map(|(_, part)| *part))
    }

    /// Returns the part that contains an address.
    pub fn containing(&self, address: u64) -> Option<MappingPart<V>> {
        let (_, part) = self.parts.range(..=address).next_back()?;
        (address < part.end).then_some(*part)
    }

    /// Returns the value of the part with this start.
    pub fn value_mut(&mut self, start: u64) -> Option<&mut V> {
        self.parts.get_mut(&start).map(|part| &mut part.value)
    }

    /// Restores addresses that a cut has freed, and joins them with adjacent parts of the same mapping. Returns `None`
    /// if they are used again.
    pub fn restore(&mut self, gone: MappingPart<V>) -> Option<Restored<V>> {
        if self.first_in(gone.start, gone.end).is_some() {
            return None;
        }
        let is_same = |other: &MappingPart<V>| other.mapping == gone.mapping;
        let before = self.parts.range(..gone.start).next_back().map(|(_, other)| *other);
        let before = before.filter(|other| other.end == gone.start).filter(is_same);
        let after = self.parts.get(&gone.end).copied().filter(is_same);
        let joined = [before, after];
        for other in joined.iter().flatten() {
            self.parts.remove(&other.start);
        }
        let (start, end) = (before.map_or(gone.start, |other| other.start), after.map_or(gone.end, |other| other.end));
        let now = MappingPart { start, end, ..gone };
        self.parts.insert(start, now);
        Some(Restored { joined, now })
    }

    /// Returns all parts by address.
    pub fn iter(&self) -> impl Iterator<Item = &MappingPart<V>> {
        self.parts.values()
    }

    /// Changes the values of all parts.
    pub fn update_values(&mut self, change: impl FnMut(&mut V)) {
        self.parts.values_mut().map(|part| &mut part.value).for_each(change);
    }

    /// Estimates the size: the nodes of a map are at least half full.
    pub(crate) fn bytes_used(&self) -> usize {
        self.parts.len() * size_of::<(u64, MappingPart<V>)>() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(parts: impl IntoIterator<Item = MappingPart<char>>) -> Vec<(u64, u64, char)> {
        parts.into_iter().map(|part| (part.start, part.end, part.value)).collect()
    }

    #[test]
    fn a_hole_leaves_two_parts_and_restoring_it_joins_them() {
        let mut ranges = LiveRanges::default();
        let whole = ranges.insert(0x1_0000, 0x1_0000, 'a').unwrap();
        let cuts = ranges.cut(0x1_4000, 0x3ffe, FreedEnd::Page);
        assert_eq!(cuts.len(), 1);
        let cut = cuts[0];
        assert_eq!((cut.before, bounds([cut.gone])), (whole, vec![(0x1_4000, 0x1_8000, 'a')]));
        let left = [(0x1_0000, 0x1_4000, 'a'), (0x1_8000, 0x2_0000, 'a')];
        assert_eq!(bounds(cut.left.into_iter().flatten()), left);
        assert_eq!((ranges.containing(0x1_8000), ranges.containing(0x1_5000)), (cut.left[1], None));
        assert_eq!(ranges.restore(cut.gone), Some(Restored { joined: cut.left, now: whole }));
        assert_eq!(ranges.restore(cut.gone), None);
    }

    #[test]
    fn a_cut_covers_all_mappings_in_its_range() {
        let mut ranges = LiveRanges::default();
        for start in [0x1000, 0x3000, 0x5000] {
            ranges.insert(start, 0x1000, 'm');
        }
        let gone = ranges.cut(0, 0x5001, FreedEnd::Page).into_iter().map(|cut| cut.gone);
        assert_eq!(bounds(gone), [0x1000, 0x3000, 0x5000].map(|start| (start, start + 0x1000, 'm')));
        assert_eq!(ranges.iter().count(), 0);
        assert!(ranges.cut(0, u64::MAX, FreedEnd::Page).is_empty());
    }

    #[test]
    fn an_exact_cut_ends_within_a_page() {
        let mut ranges = LiveRanges::default();
        ranges.insert(0x1000, 0x1000, 's');
        ranges.cut(0x1000, 0x200, FreedEnd::Exact);
        assert_eq!(bounds(ranges.iter().copied()), [(0x1200, 0x2000, 's')]);
    }

    #[test]
    fn empty_ranges_are_not_stored() {
        let mut ranges = LiveRanges::default();
        assert_eq!((ranges.insert(0x1000, 0, 'e'), ranges.insert(u64::MAX, 9, 'e')), (None, None));
        assert!(ranges.insert(u64::MAX - 1, 9, 'e').is_some_and(|part| part.size() == 1));
    }
}
