//! The instants of a thread.

use std::io;

use crate::formats::report::blocks::{Columns, PageBlocks};

/// The maximum number of instants that can be distinguished in a row of a picture.
const MAX_INSTANTS: usize = 4_000;

/// The instants of one thread, in the order of time. Of too many, those close to another one are left out.
#[derive(Debug, Default)]
pub(super) struct Instants {
    /// Time and frame.
    kept: Vec<(u64, u32)>,
    /// The minimum time between two instants.
    step: u64,
}

impl Instants {
    pub(super) fn add(&mut self, time: u64, frame: u32) {
        if self.kept.last().is_some_and(|(last, _)| time - last < self.step) {
            return;
        }
        self.kept.push((time, frame));
        if self.kept.len() > MAX_INSTANTS {
            let first = self.kept[0].0;
            self.step = (self.step * 2).max((time - first) / (MAX_INSTANTS as u64 / 2)).max(1);
            let mut last = None;
            let step = self.step;
            self.kept.retain(|(time, _)| {
                let is_kept = last.is_none_or(|last| time - last >= step);
                last = if is_kept { Some(*time) } else { last };
                is_kept
            });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Writes the instants, if there are any.
    pub(super) fn write(&self, blocks: &mut PageBlocks<'_>) -> io::Result<Option<u32>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut columns = Columns::default();
        columns.differences(self.kept.iter().map(|(time, _)| *time), 0);
        columns.plain(self.kept.iter().map(|(_, frame)| (*frame).into()));
        blocks.columns(&columns).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_instants_are_all_kept_and_many_are_thinned_evenly() {
        let mut few = Instants::default();
        (0..4_000).for_each(|time| few.add(time, 1));
        assert_eq!(few.kept.len(), 4_000);
        let mut many = Instants::default();
        (0..10_000_000).for_each(|time| many.add(time, 1));
        assert!((1_000..=MAX_INSTANTS).contains(&many.kept.len()), "{}", many.kept.len());
        let widest = many.kept.windows(2).map(|pair| pair[1].0 - pair[0].0).max();
        assert!(widest < Some(20_000), "{widest:?}");
    }

    #[test]
    fn instants_at_one_time_are_one() {
        let mut instants = Instants::default();
        (0..1_000_000).for_each(|_| instants.add(7, 1));
        assert!(instants.kept.len() <= MAX_INSTANTS);
    }
}
