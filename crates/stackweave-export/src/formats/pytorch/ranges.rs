//! Infers segments for blocks outside recorded segments: the viewer shows only blocks in segments.

use std::collections::BTreeMap;

/// Blocks with at most this distance are in one segment.
const GAP: u64 = 64 << 10;

/// All addresses that were ever allocated.
#[derive(Debug, Default)]
pub(super) struct UsedAddresses {
    blocks: AddressRanges,
    /// The mappings and segments.
    ranges: AddressRanges,
}

/// Ranges that do not overlap: the first address of each, and the first address after it.
#[derive(Debug, Default)]
struct AddressRanges(BTreeMap<u64, u64>);

impl UsedAddresses {
    pub(super) fn add_block(&mut self, address: u64, size: u64) {
        self.blocks.add(address, end(address, size), GAP);
    }

    pub(super) fn add_range(&mut self, address: u64, size: u64) {
        self.ranges.add(address, end(address, size), 0);
    }

    /// Returns segments for the blocks. A range that overlaps a segment becomes a part of it.
    pub(super) fn into_segments(self) -> InferredSegments {
        let blocks = self.blocks.0.into_iter().map(|range| (range, true));
        let mut all: Vec<((u64, u64), bool)> =
            blocks.chain(self.ranges.0.into_iter().map(|range| (range, false))).collect();
        all.sort_unstable();
        let mut joined: Vec<((u64, u64), bool)> = Vec::new();
        for ((start, end), has_blocks) in all {
            match joined.last_mut() {
                Some(((_, last_end), has)) if start < *last_end => {
                    *last_end = end.max(*last_end);
                    *has |= has_blocks;
                }
                _ => joined.push(((start, end), has_blocks)),
            }
        }
        InferredSegments(joined.into_iter().filter(|(_, has_blocks)| *has_blocks).map(|(range, _)| range).collect())
    }
}

impl AddressRanges {
    /// Adds a range, and joins it with the ranges at a distance of at most `gap`. If `gap` is 0, it joins only ranges
    /// that overlap.
    fn add(&mut self, start: u64, end: u64, gap: u64) {
        let reach = end.saturating_add(gap);
        let if_near = |(near, near_end): (&u64, &u64)| {
            let is_near = if gap == 0 { *near_end > start } else { near_end.saturating_add(gap) >= start };
            is_near.then_some((*near, *near_end))
        };
        let (mut from, mut to) = (start, end);
        while let Some((near, near_end)) = self.0.range(..reach).next_back().and_then(if_near) {
            if near <= from && to <= near_end {
                return;
            }
            self.0.remove(&near);
            (from, to) = (from.min(near), to.max(near_end));
        }
        self.0.insert(from, to);
    }
}

/// Segments that exist during the whole recording: the first address of each, and the first address after it.
#[derive(Debug, Default)]
pub(super) struct InferredSegments(BTreeMap<u64, u64>);

impl InferredSegments {
    pub(super) fn contains(&self, address: u64) -> bool {
        self.0.range(..=address).next_back().is_some_and(|(_, end)| address < *end)
    }

    /// Returns the first address and the size of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(start, end)| (*start, end - start))
    }
}

/// Returns the first address after a block. An empty block counts as one byte.
fn end(address: u64, size: u64) -> u64 {
    address.saturating_add(size.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearby_blocks_share_a_segment() {
        let mut used = UsedAddresses::default();
        for address in [0x10_0000, 0x10_0100, 0x11_0000, 0x90_0000, 0x10_0100, 0x0f_ff00] {
            used.add_block(address, 0x80);
        }
        used.add_block(0x90_1000, 0);
        let segments: Vec<_> = used.into_segments().iter().collect();
        assert_eq!(segments, [(0x0f_ff00, 0x1_0180), (0x90_0000, 0x1001)]);
    }

    #[test]
    fn only_ranges_that_overlap_blocks_become_segments() {
        let mut used = UsedAddresses::default();
        used.add_range(0x1000, 0x1000);
        used.add_range(0x2000, 0x1000);
        used.add_range(0x100_0000, 0x1000);
        used.add_block(0x100_0800, 0x1000);
        let segments = used.into_segments();
        assert_eq!(segments.iter().collect::<Vec<_>>(), [(0x100_0000, 0x1800)]);
        assert!(segments.contains(0x100_17ff) && !segments.contains(0x100_1800) && !segments.contains(0x1000));
    }
}
