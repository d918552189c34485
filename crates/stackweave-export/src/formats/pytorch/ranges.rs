//! Where blocks lie that nobody told segments for: the viewer shows blocks in segments, and has no place for others.

use std::collections::BTreeMap;

/// Blocks that are no further apart than this lie in one segment.
const GAP: u64 = 64 << 10;

/// Every address that was ever taken, as ranges that do not overlap: first address, and the first one behind.
#[derive(Debug, Default)]
pub(super) struct Touched {
    blocks: Ranges,
    /// Those that were told to be ranges.
    told: Ranges,
}

#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Touched {
    pub(super) fn block(&mut self, address: u64, size: u64) {
        self.blocks.add(address, end(address, size), GAP);
    }

    pub(super) fn range(&mut self, address: u64, size: u64) {
        self.told.add(address, end(address, size), 0);
    }

    /// Segments for the blocks. What was told and overlaps one becomes a part of it.
    pub(super) fn segments(self) -> Clusters {
        let blocks = self.blocks.0.into_iter().map(|range| (range, true));
        let mut all: Vec<((u64, u64), bool)> =
            blocks.chain(self.told.0.into_iter().map(|range| (range, false))).collect();
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
        Clusters(joined.into_iter().filter(|(_, has_blocks)| *has_blocks).map(|(range, _)| range).collect())
    }
}

impl Ranges {
    /// Adds a range, and joins it with those that are at most `gap` away; if that is 0, with those that it overlaps.
    fn add(&mut self, start: u64, end: u64, gap: u64) {
        let reach = end.saturating_add(gap);
        let touches = |(of, to): (&u64, &u64)| {
            let is_near = if gap == 0 { *to > start } else { to.saturating_add(gap) >= start };
            is_near.then_some((*of, *to))
        };
        let (mut from, mut to) = (start, end);
        while let Some((near, near_end)) = self.0.range(..reach).next_back().and_then(touches) {
            if near <= from && to <= near_end {
                return;
            }
            self.0.remove(&near);
            (from, to) = (from.min(near), to.max(near_end));
        }
        self.0.insert(from, to);
    }
}

/// Segments that were there all the time.
#[derive(Debug, Default)]
pub(super) struct Clusters(BTreeMap<u64, u64>);

impl Clusters {
    pub(super) fn holds(&self, address: u64) -> bool {
        self.0.range(..=address).next_back().is_some_and(|(_, end)| address < *end)
    }

    /// First address and size of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(start, end)| (*start, end - start))
    }
}

/// What is empty has an address too.
fn end(address: u64, size: u64) -> u64 {
    address.saturating_add(size.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_near_share_a_segment() {
        let mut touched = Touched::default();
        for address in [0x10_0000, 0x10_0100, 0x11_0000, 0x90_0000, 0x10_0100, 0x0f_ff00] {
            touched.block(address, 0x80);
        }
        touched.block(0x90_1000, 0);
        let segments: Vec<_> = touched.segments().iter().collect();
        assert_eq!(segments, [(0x0f_ff00, 0x1_0180), (0x90_0000, 0x1001)]);
    }

    #[test]
    fn ranges_are_apart_from_blocks_unless_they_overlap() {
        let mut touched = Touched::default();
        touched.range(0x1000, 0x1000);
        touched.range(0x2000, 0x1000);
        touched.range(0x100_0000, 0x1000);
        touched.block(0x100_0800, 0x1000);
        let clusters = touched.segments();
        assert_eq!(clusters.iter().collect::<Vec<_>>(), [(0x100_0000, 0x1800)]);
        assert!(clusters.holds(0x100_17ff) && !clusters.holds(0x100_1800) && !clusters.holds(0x1000));
    }
}
