//! The address ranges of code, when code is written over freed code.

use std::collections::BTreeMap;

/// Address ranges that do not overlap: a later range removes what it covers from earlier ones.
#[derive(Debug)]
pub(super) struct CodeRanges<V> {
    /// The parts, by first address.
    parts: BTreeMap<u64, RangePart<V>>,
}

/// The remaining part of a range.
#[derive(Clone, Debug)]
struct RangePart<V> {
    end: u64,
    /// The start of the complete range.
    start: u64,
    value: V,
}

impl<V> Default for CodeRanges<V> {
    fn default() -> Self {
        Self { parts: BTreeMap::new() }
    }
}

impl<V: Clone> CodeRanges<V> {
    /// Inserts `value` at `start..end`, over existing ranges. Ignores an empty range.
    pub(super) fn insert(&mut self, start: u64, end: u64, value: V) {
        if start >= end {
            return;
        }
        if let Some((_, before)) = self.parts.range_mut(..start).next_back()
            && before.end > start
        {
            let whole = before.clone();
            before.end = start;
            if whole.end > end {
                self.parts.insert(end, whole);
            }
        }
        while let Some((&covered, _)) = self.parts.range(start..end).next() {
            if let Some(part) = self.parts.remove(&covered)
                && part.end > end
            {
                self.parts.insert(end, part);
            }
        }
        self.parts.insert(start, RangePart { end, start, value });
    }

    /// Removes the remaining parts, before `end`, of the range that began at `start`.
    pub(super) fn remove(&mut self, start: u64, end: u64) -> Option<V> {
        if start >= end {
            return None;
        }
        let parts = self.parts.range(start..end).filter(|(_, part)| part.start == start);
        let keys: Vec<u64> = parts.map(|(&key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.parts.remove(&key)).last().map(|part| part.value)
    }

    /// Returns the value at `address`, and the start of its range.
    pub(super) fn find(&self, address: u64) -> Option<(u64, &V)> {
        let (_, part) = self.parts.range(..=address).next_back()?;
        (address < part.end).then_some((part.start, &part.value))
    }

    /// Returns the number of parts.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn clear(&mut self) {
        self.parts.clear();
    }
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::random::Random;

    use super::*;

    #[test]
    fn a_later_range_covers_the_earlier_ones() {
        let mut ranges = CodeRanges::default();
        ranges.insert(10, 20, "a");
        ranges.insert(20, 30, "b");
        ranges.insert(15, 25, "c");
        assert_eq!(ranges.find(9), None);
        assert_eq!(ranges.find(10), Some((10, &"a")));
        assert_eq!(ranges.find(14), Some((10, &"a")));
        assert_eq!(ranges.find(15), Some((15, &"c")));
        assert_eq!(ranges.find(24), Some((15, &"c")));
        assert_eq!(ranges.find(25), Some((20, &"b")));
        assert_eq!(ranges.find(30), None);
    }

    #[test]
    fn a_range_within_another_leaves_both_of_its_ends() {
        let mut ranges = CodeRanges::default();
        ranges.insert(0, 100, "whole");
        ranges.insert(40, 60, "stub");
        assert_eq!(ranges.find(39), Some((0, &"whole")));
        assert_eq!(ranges.find(40), Some((40, &"stub")));
        assert_eq!(ranges.find(60), Some((0, &"whole")));
        assert_eq!(ranges.remove(0, 100), Some("whole"));
        assert_eq!(ranges.find(60), None);
        assert_eq!(ranges.find(59), Some((40, &"stub")));
    }

    #[test]
    fn an_empty_range_is_ignored() {
        let mut ranges = CodeRanges::default();
        ranges.insert(5, 5, ());
        ranges.insert(6, 5, ());
        assert_eq!(ranges.len(), 0);
        assert_eq!(ranges.remove(6, 5), None);
    }

    #[test]
    fn ranges_agree_with_a_table_of_single_addresses() {
        let mut random = Random::new(1);
        let (mut ranges, mut table) = (CodeRanges::default(), [None; 256]);
        for number in 0..2000_u64 {
            let start = random.number_below(256);
            let end = (start + random.number_below(32)).min(256);
            ranges.insert(start, end, number);
            for at in start..end {
                table[usize::try_from(at).unwrap()] = Some((start, number));
            }
        }
        for (address, expected) in (0_u64..).zip(table) {
            assert_eq!(ranges.find(address).map(|(start, &number)| (start, number)), expected);
        }
    }
}
