//! A profile as a table of functions.

use crate::aggregate::{CallStatistics, Function, Profile, Statistics, View};

/// A function with its cost, as in `stackweave top`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopRow {
    /// The function.
    pub function: Function,
    /// The cost.
    pub cost: CallStatistics,
}

/// Returns the functions of a profile that `view` shows, with their costs, unsorted.
pub fn function_rows(profile: &Profile, view: &View) -> Vec<TopRow> {
    let profile = profile.view(view);
    let statistics = Statistics::of(&profile);
    let row = |(id, cost)| TopRow { function: profile.functions().function(id).clone(), cost };
    statistics.functions().map(row).collect()
}
