//! What was odd in a recording of phases, by name and by place: for those who ask why.

use stackweave_core::RawFrame;

/// More than so many different ones are not told apart.
const MOST: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Phases that were left open when one around them ended, and how often.
    left_open: Vec<(RawFrame, u64)>,
    /// Where ends came from that had no beginning, the first place first, and how often.
    unmatched: Vec<(String, u64)>,
}

impl Tally {
    pub(super) fn add_left_open(&mut self, frames: &[RawFrame]) {
        for frame in frames {
            count(&mut self.left_open, *frame);
        }
    }

    pub(super) fn add_unmatched(&mut self, place: String) {
        count(&mut self.unmatched, place);
    }

    pub(super) fn left_open(&self) -> &[(RawFrame, u64)] {
        &self.left_open
    }

    pub(super) fn unmatched(&self) -> &[(String, u64)] {
        &self.unmatched
    }
}

fn count<T: PartialEq>(counts: &mut Vec<(T, u64)>, what: T) {
    if let Some((_, times)) = counts.iter_mut().find(|(known, _)| *known == what) {
        *times += 1;
    } else if counts.len() < MOST {
        counts.push((what, 1));
    }
}
