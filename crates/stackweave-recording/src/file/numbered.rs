//! Things with numbers that mostly follow each other. A gap costs nothing, however wide.

use std::collections::BTreeMap;

use super::error::BlockError;

/// Things by number.
#[derive(Clone, Debug)]
pub(super) struct Numbered<T> {
    /// Runs by their first number; none begins where another ends. Mostly there is one.
    runs: BTreeMap<u32, Vec<T>>,
    count: usize,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { runs: BTreeMap::new(), count: 0 }
    }
}

impl<T> Numbered<T> {
    /// Adds things with the numbers from `first` on, none of which may be there yet. Number 0 is nothing's.
    pub(super) fn add(&mut self, first: u32, mut items: Vec<T>) -> Result<(), BlockError> {
        let end = end(first, &items);
        let last_end = u64::from(u32::MAX) + 1;
        let next = self.runs.range(first..).next().map_or(last_end, |(next, _)| u64::from(*next));
        let before = self.runs.range_mut(..first).next_back();
        let free_from = before.as_ref().map_or(1, |(first, items)| self::end(**first, items));
        if u64::from(first) < free_from || end > next {
            return Err(BlockError::Contradiction);
        }
        self.count += items.len();
        match before {
            Some((_, before)) if free_from == u64::from(first) => before.append(&mut items),
            _ if items.is_empty() => {}
            _ => drop(self.runs.insert(first, items)),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let (first, items) = self.runs.range(..=number).next_back()?;
        items.get((number - first) as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.runs.iter().flat_map(|(first, items)| (*first..=u32::MAX).zip(items))
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// The greatest number; 0 if there is none.
    #[expect(clippy::cast_possible_truncation, reason = "checked when it was added")]
    pub(super) fn last(&self) -> u32 {
        self.runs.last_key_value().map_or(0, |(first, items)| (end(*first, items) - 1) as u32)
    }
}

/// The number after the last.
fn end<T>(first: u32, items: &[T]) -> u64 {
    u64::from(first) + items.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stay_gaps_and_may_be_filled() {
        let mut numbered = Numbered::default();
        numbered.add(1, vec!['a', 'b']).unwrap();
        numbered.add(u32::MAX, vec!['z']).unwrap();
        numbered.add(5, vec!['e']).unwrap();
        assert_eq!(
            [0, 1, 2, 3, 5, u32::MAX].map(|n| numbered.get(n).copied()),
            [None, Some('a'), Some('b'), None, Some('e'), Some('z')]
        );
        numbered.add(3, vec!['c', 'd']).unwrap();
        let all: String = numbered.iter().map(|(_, item)| item).collect();
        assert_eq!((all.as_str(), numbered.len(), numbered.last()), ("abcdez", 6, u32::MAX));
        assert_eq!(numbered.get(4), Some(&'d'));
    }

    #[test]
    fn no_number_is_given_twice() {
        let mut numbered = Numbered::default();
        numbered.add(4, vec!['d', 'e']).unwrap();
        for (first, items) in [(0, vec!['x']), (3, vec!['x', 'y']), (5, vec!['x']), (4, vec!['x'])] {
            assert_eq!(numbered.add(first, items), Err(BlockError::Contradiction), "{first}");
        }
        assert_eq!(numbered.add(u32::MAX, vec!['x', 'y']), Err(BlockError::Contradiction));
        assert_eq!((numbered.get(4), numbered.len()), (Some(&'d'), 2));
    }

    #[test]
    fn runs_that_come_in_the_wrong_order_cost_no_more_than_others() {
        let mut numbered = Numbered::default();
        for number in (1..300_000_u32).rev() {
            numbered.add(number * 2, vec![number]).unwrap();
        }
        assert_eq!((numbered.len(), numbered.get(24), numbered.get(25)), (299_999, Some(&12), None));
    }
}
