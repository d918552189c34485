//! Places of a file that can't be read.

use core::fmt;
use std::ops::Range;

/// How many places are kept with their positions; beyond that they are only counted.
const KEPT: usize = 32;
/// How many are written out in a sentence.
const TOLD: usize = 3;

/// Byte ranges of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    first: Vec<Range<u64>>,
    count: u64,
    bytes: u64,
    last_end: Option<u64>,
}

impl Damage {
    /// The first places, in the order in which they were met. Those that touch are one.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.first
    }

    /// How many places there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// How many bytes they hold together.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there are none.
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

/// `bytes 100 to 199, 300 to 399 and 5 more places`
impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes ")?;
        for (index, range) in self.first.iter().take(TOLD).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} to {}", range.start, range.end.saturating_sub(1))?;
        }
        match self.count.saturating_sub(TOLD as u64) {
            0 => Ok(()),
            1 => f.write_str(" and 1 more place"),
            more => write!(f, " and {more} more places"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_touch_are_one() {
        let mut damage = Damage::default();
        for range in [10..20, 20..30, 40..41] {
            damage.add(range);
        }
        assert_eq!((damage.ranges(), damage.count(), damage.bytes()), (&[10..30, 40..41][..], 2, 21));
        assert_eq!(damage.to_string(), "bytes 10 to 29, 40 to 40");
    }

    #[test]
    fn many_places_are_counted_and_not_kept() {
        let mut damage = Damage::default();
        for place in 0..1_000 {
            damage.add(place * 10..place * 10 + 4);
        }
        assert_eq!((damage.ranges().len(), damage.count(), damage.bytes()), (KEPT, 1_000, 4_000));
        assert_eq!(damage.to_string(), "bytes 0 to 3, 10 to 13, 20 to 23 and 997 more places");
        let mut twice = damage.clone();
        twice.add_all(&damage);
        assert_eq!((twice.count(), twice.bytes()), (2_000, 8_000));
    }
}
