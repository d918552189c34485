//! The live memory at the moments, in few rows: blocks of one stack that are live at the same moments have one row.

use std::collections::HashSet;

use stackweave_heap::Weight;
use stackweave_profile::WordMap;

/// With more rows, the number of moments is halved.
const MAX_ROWS: usize = 300_000;

/// The moments at which blocks of a stack are live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LiveInterval {
    pub(super) process: u32,
    pub(super) stack: u32,
    /// The index of the first moment at which they are live, and that of the first one after.
    pub(super) first: u8,
    pub(super) end: u8,
}

/// The rows of one device.
#[derive(Debug)]
pub(super) struct Rows {
    all: WordMap<LiveInterval, Weight>,
    max: usize,
}

impl Default for Rows {
    fn default() -> Self {
        Self::at_most(MAX_ROWS)
    }
}

impl Rows {
    pub(super) fn at_most(max: usize) -> Self {
        Self { all: WordMap::default(), max }
    }

    /// Adds blocks that are not live any more, unless they count for nothing or were live at no moment.
    pub(super) fn add(&mut self, interval: LiveInterval, weight: Weight) {
        if interval.first < interval.end && weight != Weight::default() {
            let sum = self.all.entry(interval).or_default();
            sum.bytes = sum.bytes.saturating_add(weight.bytes);
            sum.blocks = sum.blocks.saturating_add(weight.blocks);
        }
    }

    /// Removes blocks that were added, because their free failed.
    pub(super) fn undo(&mut self, interval: LiveInterval, weight: Weight) {
        let Some(sum) = self.all.get_mut(&interval) else { return };
        sum.bytes = sum.bytes.saturating_sub(weight.bytes);
        sum.blocks = sum.blocks.saturating_sub(weight.blocks);
        if *sum == Weight::default() {
            self.all.remove(&interval);
        }
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.all.len() > self.max
    }

    /// Returns whether there would be too many with a single moment.
    pub(super) fn have_too_many_stacks(&self) -> bool {
        let mut stacks = HashSet::new();
        self.all.keys().any(|interval| {
            stacks.insert((interval.process, interval.stack));
            stacks.len() > self.max
        })
    }

    /// Changes the indexes of moments to these.
    pub(super) fn renumber(&mut self, indexes: &[u8]) {
        for (interval, weight) in core::mem::take(&mut self.all) {
            self.add(interval.renumbered(indexes), weight);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&LiveInterval, &Weight)> {
        self.all.iter()
    }
}

impl LiveInterval {
    pub(super) fn renumbered(self, indexes: &[u8]) -> Self {
        let index = |old: u8| indexes.get(usize::from(old)).copied().unwrap_or(old);
        Self { first: index(self.first), end: index(self.end), ..self }
    }
}
