//! A profile: what a program, or a part of one, cost, by who called whom.

use crate::aggregate::call_tree::{CallTree, TreeBuilder};
use crate::aggregate::function::FunctionTable;
use crate::aggregate::measure::Measure;

/// What was seen while a profile was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Events that the profile is made of.
    pub events: u64,
    /// Spans that never ended: each is counted up to the last event of its thread, or to where events are missing.
    pub unfinished: u64,
    /// Ends of what was never begun.
    pub unmatched_ends: u64,
    /// Allocations of an address that was taken already: the older one counts as freed.
    pub replaced_blocks: u64,
    /// Frees of what was not seen to be allocated.
    pub unknown_frees: u64,
}

impl Counts {
    pub(crate) const fn add(&mut self, other: Self) {
        self.events = self.events.saturating_add(other.events);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.unmatched_ends = self.unmatched_ends.saturating_add(other.unmatched_ends);
        self.replaced_blocks = self.replaced_blocks.saturating_add(other.replaced_blocks);
        self.unknown_frees = self.unknown_frees.saturating_add(other.unknown_frees);
    }
}

/// What a program cost, by who called whom.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) measure: Measure,
    pub(crate) functions: FunctionTable,
    pub(crate) tree: CallTree,
    pub(crate) counts: Counts,
}

/// Two profiles count different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one profile counts {}, the other {}", .0.describe(), .1.describe())]
pub struct DifferentMeasures(pub Measure, pub Measure);

impl Profile {
    /// A profile of nothing.
    pub fn empty(measure: Measure) -> Self {
        let (functions, tree, counts) = Default::default();
        Self { measure, functions, tree, counts }
    }

    /// What its costs are.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Its functions.
    pub fn functions(&self) -> &FunctionTable {
        &self.functions
    }

    /// Who called whom.
    pub fn tree(&self) -> &CallTree {
        &self.tree
    }

    /// What was seen while it was made.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What all of it cost.
    pub fn total(&self) -> i64 {
        self.tree.total()
    }

    /// Adds another profile of the same measure: of another thread, process, machine or run.
    pub fn merge(&mut self, other: &Self) -> Result<(), DifferentMeasures> {
        if self.measure != other.measure {
            return Err(DifferentMeasures(self.measure, other.measure));
        }
        let frames = self.functions.extend(&other.functions);
        let mut builder = TreeBuilder::from(core::mem::take(&mut self.tree));
        builder.add_tree(&other.tree, &frames);
        self.tree = builder.finish();
        self.counts.add(other.counts);
        Ok(())
    }
}
