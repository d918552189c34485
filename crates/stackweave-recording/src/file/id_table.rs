//! Values with mostly consecutive numbers. Gaps of any size cost nothing.

use std::collections::BTreeMap;

use super::error::BlockError;

/// Values by number.
#[derive(Clone, Debug)]
pub(super) struct NumberedValues<T> {
    /// In the order in which they were added.
    items: Vec<T>,
    /// Runs by their first number, usually one.
    runs: BTreeMap<u32, Run>,
    /// The run that was added to last, in which most numbers are.
    last: Run,
}

/// Consecutive numbers whose values are neighbours.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    first: u32,
    /// The index of the first value.
    start: u32,
    length: u32,
}

impl Run {
    /// Returns the number after the last one.
    fn end(self) -> u64 {
        u64::from(self.first) + u64::from(self.length)
    }

    #[inline]
    fn index(self, number: u32) -> Option<usize> {
        let offset = number.wrapping_sub(self.first);
        (offset < self.length).then_some(self.start as usize + offset as usize)
    }
}

impl<T> Default for NumberedValues<T> {
    fn default() -> Self {
        Self { items: Vec::new(), runs: BTreeMap::new(), last: Run::default() }
    }
}

impl<T> NumberedValues<T> {
    /// Adds values with the numbers from `first` on. Fails if one of them exists. The number 0 is reserved for none.
    pub(super) fn add(&mut self, first: u32, mut items: Vec<T>) -> Result<(), BlockError> {
        let too_much = |_| BlockError::TooMuch;
        let start = u32::try_from(self.items.len()).map_err(too_much)?;
        let length = u32::try_from(items.len()).map_err(too_much)?;
        let mut run = Run { first, start, length };
        let last_end = u64::from(u32::MAX) + 1;
        let next = self.runs.range(first..).next().map_or(last_end, |(next, _)| u64::from(*next));
        let before = self.runs.range(..first).next_back().map(|(_, before)| *before);
        let free_from = before.map_or(1, Run::end);
        if u64::from(first) < free_from || run.end() > next {
            return Err(BlockError::Contradiction);
        }
        if let Some(before) = before.filter(|before| before.end() == u64::from(first))
            && before.start + before.length == start
        {
            run = Run { length: before.length + length, ..before };
        }
        if run.length > 0 {
            self.runs.insert(run.first, run);
            self.last = run;
        }
        self.items.append(&mut items);
        Ok(())
    }

    /// Returns the index of a value among all, in the order in which they were added.
    #[inline]
    pub(super) fn index(&self, number: u32) -> Option<usize> {
        self.last.index(number).or_else(|| self.runs.range(..=number).next_back()?.1.index(number))
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.items.get(self.index(number)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let values = |run: &Run| &self.items[run.start as usize..][..run.length as usize];
        self.runs.values().flat_map(move |run| (run.first..=u32::MAX).zip(values(run)))
    }

    /// Returns the number of values.
    pub(super) const fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the highest number; 0 if there is none.
    #[expect(clippy::cast_possible_truncation, reason = "checked in `add`")]
    pub(super) fn last(&self) -> u32 {
        self.runs.last_key_value().map_or(0, |(_, run)| (run.end() - 1) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_persist_and_can_be_filled() {
        let mut table = NumberedValues::default();
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
        let indexes: Vec<_> = table.iter().map(|(number, _)| table.index(number).unwrap()).collect();
        assert_eq!((indexes, table.index(6)), (vec![0, 1, 4, 5, 3, 2], None));
    }

    #[test]
    fn no_number_is_assigned_twice() {
        let mut table = NumberedValues::default();
        table.add(4, vec!['d', 'e']).unwrap();
        for (first, items) in [(0, vec!['x']), (3, vec!['x', 'y']), (5, vec!['x']), (4, vec!['x'])] {
            assert_eq!(table.add(first, items), Err(BlockError::Contradiction), "{first}");
        }
        assert_eq!(table.add(u32::MAX, vec!['x', 'y']), Err(BlockError::Contradiction));
        assert_eq!((table.get(4), table.len()), (Some(&'d'), 2));
    }

    #[test]
    fn runs_in_reverse_order_cost_no_more_than_others() {
        let mut table = NumberedValues::default();
        for number in (1..300_000_u32).rev() {
            table.add(number * 2, vec![number]).unwrap();
        }
        assert_eq!((table.len(), table.get(24), table.get(25)), (299_999, Some(&12), None));
    }
}
