//! Counts the anomalies of a timing by name and by location, so that the user can find their cause.

use stackweave_core::RawFrame;

/// The greatest number of different entries of each kind that are counted.
const MAX_ENTRIES: usize = 32;

#[derive(Debug, Default)]
pub(super) struct AnomalyTally {
    /// The phases that were open when an outer phase ended, and their counts.
    left_open: Vec<(RawFrame, u64)>,
    /// The locations of pops without a push, in the order of their first occurrence, and their counts.
    unmatched: Vec<(String, u64)>,
}

impl AnomalyTally {
    pub(super) fn add_left_open(&mut self, frames: &[RawFrame]) {
        for frame in frames {
            count(&mut self.left_open, *frame);
        }
    }

    pub(super) fn add_unmatched(&mut self, location: String) {
        count(&mut self.unmatched, location);
    }

    pub(super) fn left_open(&self) -> &[(RawFrame, u64)] {
        &self.left_open
    }

    pub(super) fn unmatched(&self) -> &[(String, u64)] {
        &self.unmatched
    }
}

fn count<T: PartialEq>(counts: &mut Vec<(T, u64)>, entry: T) {
    if let Some((_, times)) = counts.iter_mut().find(|(known, _)| *known == entry) {
        *times += 1;
    } else if counts.len() < MAX_ENTRIES {
        counts.push((entry, 1));
    }
}
