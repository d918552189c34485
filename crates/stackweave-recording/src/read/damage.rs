//! Byte ranges of a file that can't be read.

use core::fmt;
use std::ops::Range;

/// The number of ranges that are kept; further ones are only counted.
const KEPT: usize = 32;
/// The number of ranges in a sentence.
const SHOWN: usize = 3;

/// Byte ranges of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    first: Vec<Range<u64>>,
    count: u64,
    bytes: u64,
    last_end: Option<u64>,
}

impl Damage {
    /// Returns the first ranges, in the order of their discovery. Adjacent ranges are merged.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.first
    }

    /// Returns the number of ranges.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the total number of bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, range: Range<u64>) {
        self.bytes = self.bytes.saturating_add(range.end.saturating_sub(range.start));
        let continues = self.last_end == Some(range.start);
        self.last_end = Some(range.end);
        if continues {
            if let Some(last) = self.first.last_mut().filter(|last| last.end == range.start) {
                last.end = range.end;
            }
            return;
        }
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(range);
        }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        let kept: u64 = other.first.iter().map(|range| range.end.saturating_sub(range.start)).sum();
        other.first.iter().for_each(|range| self.add(range.clone()));
        self.count += other.count - other.first.len() as u64;
        self.bytes = self.bytes.saturating_add(other.bytes.saturating_sub(kept));
    }
}

/// `bytes 100 to 199, 300 to 399 and 5 more ranges`
impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes ")?;
        for (index, range) in self.first.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} to {}", range.start, range.end.saturating_sub(1))?;
        }
        match self.count.saturating_sub(SHOWN as u64) {
            0 => Ok(()),
            1 => f.write_str(" and 1 more range"),
            more => write!(f, " and {more} more ranges"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_ranges_are_merged() {
        let mut damage = Damage::default();
        for range in [10..20, 20..30, 40..41] {
            damage.add(range);
        }
        assert_eq!((damage.ranges(), damage.count(), damage.bytes()), (&[10..30, 40..41][..], 2, 21));
        assert_eq!(damage.to_string(), "bytes 10 to 29, 40 to 40");
    }

    #[test]
    fn many_ranges_are_counted_and_not_kept() {
        let mut damage = Damage::default();
        for index in 0..1_000 {
            damage.add(index * 10..index * 10 + 4);
        }
        assert_eq!((damage.ranges().len(), damage.count(), damage.bytes()), (KEPT, 1_000, 4_000));
        assert_eq!(damage.to_string(), "bytes 0 to 3, 10 to 13, 20 to 23 and 997 more ranges");
        let mut twice = damage.clone();
        twice.add_all(&damage);
        assert_eq!((twice.count(), twice.bytes()), (2_000, 8_000));
    }
}
