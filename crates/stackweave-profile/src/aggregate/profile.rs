//! A profile: the costs of a program, or of a part of one, as a call tree.

use crate::aggregate::call_tree::{CallTree, CallTreeBuilder};
use crate::aggregate::function::FunctionTable;
use crate::aggregate::hidden::Hidden;
use crate::aggregate::measure::Measure;

/// Counts from building a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileCounts {
    /// The events of the profile.
    pub events: u64,
    /// Spans without an end: each is counted up to the last event of its thread, or to where events are missing.
    pub unfinished: u64,
    /// Ends without a start.
    pub unmatched_ends: u64,
    /// Allocations at an address of a live block: the older block counts as freed.
    pub replaced_blocks: u64,
    /// Frees of blocks whose allocation was not recorded.
    pub unknown_frees: u64,
}

impl ProfileCounts {
    pub(crate) const fn add(&mut self, other: Self) {
        self.events = self.events.saturating_add(other.events);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.unmatched_ends = self.unmatched_ends.saturating_add(other.unmatched_ends);
        self.replaced_blocks = self.replaced_blocks.saturating_add(other.replaced_blocks);
        self.unknown_frees = self.unknown_frees.saturating_add(other.unknown_frees);
    }
}

/// The costs of a program as a call tree.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) measure: Measure,
    pub(crate) functions: FunctionTable,
    pub(crate) tree: CallTree,
    pub(crate) counts: ProfileCounts,
    pub(crate) hidden: Hidden,
    pub(crate) has_frames: bool,
}

/// An error: two profiles have different measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one profile counts {}, the other {}", .0.describe(), .1.describe())]
pub struct DifferentMeasures(pub Measure, pub Measure);

impl Profile {
    /// Returns an empty profile.
    pub fn empty(measure: Measure) -> Self {
        let (functions, tree, counts, hidden) = Default::default();
        Self { measure, functions, tree, counts, hidden, has_frames: false }
    }

    /// Returns the measure.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Returns the functions.
    pub fn functions(&self) -> &FunctionTable {
        &self.functions
    }

    /// Returns the call tree.
    pub fn tree(&self) -> &CallTree {
        &self.tree
    }

    /// Returns the counts from building it.
    pub fn counts(&self) -> ProfileCounts {
        self.counts
    }

    /// Returns what its view hides, and [`View::show_all`](crate::View::show_all) would show.
    pub fn hidden(&self) -> Hidden {
        self.hidden
    }

    /// Returns the sentence about what its view hides, with the option that shows it.
    pub fn hidden_sentence(&self, option: &str) -> Option<String> {
        self.hidden.sentence(self.total(), self.measure, option)
    }

    /// Returns whether it has any frames, visible or not.
    pub fn has_frames(&self) -> bool {
        self.has_frames
    }

    /// Returns the total cost.
    pub fn total(&self) -> i64 {
        self.tree.total()
    }

    /// Adds another profile of the same measure: of another thread, process, machine or run.
    pub fn merge(&mut self, other: &Self) -> Result<(), DifferentMeasures> {
        if self.measure != other.measure {
            return Err(DifferentMeasures(self.measure, other.measure));
        }
        let frames = self.functions.extend(&other.functions);
        let mut builder = CallTreeBuilder::from(core::mem::take(&mut self.tree));
        builder.add_tree(&other.tree, &frames);
        self.tree = builder.finish();
        self.counts.add(other.counts);
        self.hidden.add(other.hidden);
        self.has_frames |= other.has_frames;
        Ok(())
    }
}
