//! What was live at the moments, as few rows: blocks of one stack that came and went together are one.

use std::collections::HashMap;

use super::scale::Weight;

/// More rows than this and there are half as many moments.
const MOST: usize = 300_000;

/// Blocks that one stack has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stay {
    pub(super) process: u32,
    pub(super) stack: u32,
    /// The places of the first moment at which they were there, and of the first at which they were not any more.
    pub(super) first: u8,
    pub(super) behind: u8,
}

/// The rows of one device.
#[derive(Debug)]
pub(super) struct Rows {
    all: HashMap<Stay, Weight>,
    most: usize,
}

impl Default for Rows {
    fn default() -> Self {
        Self::at_most(MOST)
    }
}

impl Rows {
    pub(super) fn at_most(most: usize) -> Self {
        Self { all: HashMap::new(), most }
    }

    /// Something is not there any more. Nothing is kept of what no moment has seen.
    pub(super) fn add(&mut self, stay: Stay, weight: Weight) {
        if stay.first < stay.behind {
            let sum = self.all.entry(stay).or_default();
            sum.bytes = sum.bytes.saturating_add(weight.bytes);
            sum.blocks = sum.blocks.saturating_add(weight.blocks);
        }
    }

    /// It is there after all.
    pub(super) fn take_back(&mut self, stay: Stay, weight: Weight) {
        let Some(sum) = self.all.get_mut(&stay) else { return };
        sum.bytes = sum.bytes.saturating_sub(weight.bytes);
        sum.blocks = sum.blocks.saturating_sub(weight.blocks);
        if *sum == Weight::default() {
            self.all.remove(&stay);
        }
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.all.len() > self.most
    }

    /// Moments have these places now.
    pub(super) fn move_to(&mut self, places: &[u8]) {
        for (stay, weight) in core::mem::take(&mut self.all) {
            self.add(stay.moved_to(places), weight);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Stay, &Weight)> {
        self.all.iter()
    }
}

impl Stay {
    pub(super) fn moved_to(self, places: &[u8]) -> Self {
        let place = |of: u8| places.get(usize::from(of)).copied().unwrap_or(of);
        Self { first: place(self.first), behind: place(self.behind), ..self }
    }
}
