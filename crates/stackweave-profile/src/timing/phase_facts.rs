//! The figures of phases besides their times.

use std::ops::RangeInclusive;

/// The outcomes of the phases of a function, and the figures of its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PhaseFacts {
    pub(super) failed: u64,
    pub(super) left_open: u64,
    pub(super) unfinished: u64,
    pub(super) bytecode_count: Option<u64>,
    pub(super) inline_depth: Option<RangeInclusive<u64>>,
}

impl PhaseFacts {
    pub(super) fn has_code(&mut self, bytecode_count: Option<u64>, inline_depth: Option<u64>) {
        self.bytecode_count = self.bytecode_count.max(bytecode_count);
        if let Some(depth) = inline_depth {
            self.has_depths(&(depth..=depth));
        }
    }

    fn has_depths(&mut self, depths: &RangeInclusive<u64>) {
        let known = self.inline_depth.get_or_insert_with(|| depths.clone());
        *known = *known.start().min(depths.start())..=*known.end().max(depths.end());
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.failed = self.failed.saturating_add(other.failed);
        self.left_open = self.left_open.saturating_add(other.left_open);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.bytecode_count = self.bytecode_count.max(other.bytecode_count);
        if let Some(depths) = &other.inline_depth {
            self.has_depths(depths);
        }
    }
}
