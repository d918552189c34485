//! A profile as a table of functions.

use crate::aggregate::{CallStatistics, Function, Profile, Statistics, View};

/// A function and what it cost, as `stackweave top` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    /// The function.
    pub function: Function,
    /// What it cost.
    pub cost: CallStatistics,
}

/// What each function of a profile cost that `view` shows, in no order.
pub fn function_rows(profile: &Profile, view: &View) -> Vec<FunctionRow> {
    let profile = profile.view(view);
    let statistics = Statistics::of(&profile);
    let row = |(id, cost)| FunctionRow { function: profile.functions().function(id).clone(), cost };
    statistics.functions().map(row).collect()
}
