//! Things with numbers that mostly follow each other. A gap costs nothing, however wide.

use super::error::BlockError;

/// Things by number.
#[derive(Clone, Debug)]
pub(super) struct Numbered<T> {
    /// By first number; none touches another.
    runs: Vec<Run<T>>,
    count: usize,
}

#[derive(Clone, Debug)]
struct Run<T> {
    first: u32,
    items: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { runs: Vec::new(), count: 0 }
    }
}

impl<T> Run<T> {
    /// The number after the last.
    fn end(&self) -> u64 {
        u64::from(self.first) + self.items.len() as u64
    }
}

impl<T> Numbered<T> {
    /// Adds things with the numbers from `first` on, none of which may be there yet. Number 0 is nothing's.
    pub(super) fn add(&mut self, first: u32, mut items: Vec<T>) -> Result<(), BlockError> {
        let end = u64::from(first) + items.len() as u64;
        if first == 0 || end > u64::from(u32::MAX) + 1 {
            return Err(BlockError::Contradiction);
        }
        let at = self.runs.partition_point(|run| run.first <= first);
        let is_free = self.runs.get(at).is_none_or(|next| end <= next.first.into());
        let before = at.checked_sub(1).map(|before| &mut self.runs[before]);
        if !is_free || before.as_ref().is_some_and(|before| before.end() > first.into()) {
            return Err(BlockError::Contradiction);
        }
        self.count += items.len();
        match before {
            Some(before) if before.end() == u64::from(first) => before.items.append(&mut items),
            _ if items.is_empty() => {}
            _ => self.runs.insert(at, Run { first, items }),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let run = match &self.runs[..] {
            [only] => only,
            runs => &runs[runs.partition_point(|run| run.first <= number).checked_sub(1)?],
        };
        run.items.get(number.checked_sub(run.first)? as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.runs.iter().flat_map(|run| (run.first..=u32::MAX).zip(&run.items))
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// The greatest number; 0 if there is none.
    #[expect(clippy::cast_possible_truncation, reason = "checked when it was added")]
    pub(super) fn last(&self) -> u32 {
        self.runs.last().map_or(0, |run| (run.end() - 1) as u32)
    }
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
}
