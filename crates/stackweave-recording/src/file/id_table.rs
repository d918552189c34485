//! Values with mostly consecutive numbers. Gaps of any size cost nothing.

use std::collections::BTreeMap;

use super::error::BlockError;

/// Values by number.
#[derive(Clone, Debug)]
pub(super) struct IdTable<T> {
    /// Runs by their first number, usually one. No run begins where another ends.
    runs: BTreeMap<u32, Vec<T>>,
    count: usize,
}

impl<T> Default for IdTable<T> {
    fn default() -> Self {
        Self { runs: BTreeMap::new(), count: 0 }
    }
}

impl<T> IdTable<T> {
    /// Adds values with the numbers from `first` on. Fails if one of them exists. The number 0 is reserved for none.
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

    /// Returns the number of values.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Returns the highest number; 0 if there is none.
    #[expect(clippy::cast_possible_truncation, reason = "checked in `add`")]
    pub(super) fn last(&self) -> u32 {
        self.runs.last_key_value().map_or(0, |(first, items)| (end(*first, items) - 1) as u32)
    }
}

/// Returns the number after the last one.
fn end<T>(first: u32, items: &[T]) -> u64 {
    u64::from(first) + items.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_persist_and_can_be_filled() {
        let mut table = IdTable::default();
        table.add(1, vec!['a', 'b']).unwrap();
        table.add(u32::MAX, vec!['z']).unwrap();
        table.add(5, vec!['e']).unwrap();
        assert_eq!(
            [0, 1, 2, 3, 5, u32::MAX].map(|n| table.get(n).copied()),
            [None, Some('a'), Some('b'), None, Some('e'), Some('z')]
        );
        table.add(3, vec!['c', 'd']).unwrap();
        let all: String = table.iter().map(|(_, item)| item).collect();
        assert_eq!((all.as_str(), table.len(), table.last()), ("abcdez", 6, u32::MAX));
        assert_eq!(table.get(4), Some(&'d'));
    }

    #[test]
    fn no_number_is_assigned_twice() {
        let mut table = IdTable::default();
        table.add(4, vec!['d', 'e']).unwrap();
        for (first, items) in [(0, vec!['x']), (3, vec!['x', 'y']), (5, vec!['x']), (4, vec!['x'])] {
            assert_eq!(table.add(first, items), Err(BlockError::Contradiction), "{first}");
        }
        assert_eq!(table.add(u32::MAX, vec!['x', 'y']), Err(BlockError::Contradiction));
        assert_eq!((table.get(4), table.len()), (Some(&'d'), 2));
    }

    #[test]
    fn runs_in_reverse_order_cost_no_more_than_others() {
        let mut table = IdTable::default();
        for number in (1..300_000_u32).rev() {
            table.add(number * 2, vec![number]).unwrap();
        }
        assert_eq!((table.len(), table.get(24), table.get(25)), (299_999, Some(&12), None));
    }
}
