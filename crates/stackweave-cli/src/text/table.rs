//! The table of functions.

use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use stackweave_profile::{CallStatistics, FunctionId, Measure, Profile, Statistics};

use crate::text::location::name_and_path;
use crate::text::rows::{LineLayout, StyledText, TextRow, first, write_rows};
use crate::text::style::Style;
use crate::text::tree::{count_text, float};
use crate::text::values::{percentage, share};

/// The column that a table is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum Sort {
    /// Self cost
    #[default]
    #[value(name = "self")]
    SelfCost,
    /// Total cost, with callees
    Total,
    /// Number of calls
    Calls,
    /// Name
    #[value(skip)]
    Name,
}

/// The options of [`write_table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// The column to sort by.
    pub sort: Sort,
    /// The maximum number of functions.
    pub limit: Option<usize>,
    /// The maximum number of columns of a line.
    pub width: Option<usize>,
    /// Whether to use colours.
    pub colour: bool,
    /// Locations are relative to this folder.
    pub folder: Option<PathBuf>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { sort: Sort::SelfCost, limit: Some(30), width: None, colour: false, folder: None }
    }
}

/// Writes one line for each function, as `pstats` does: calls (`total/primitive` under recursion), self and total cost,
/// and these per call if they are times.
pub fn write_table(out: &mut dyn Write, profile: &Profile, options: &TableOptions) -> io::Result<()> {
    let mut functions = sorted_functions(profile, options.sort);
    let hidden = options.limit.map_or(0, |limit| functions.len().saturating_sub(limit));
    functions.truncate(functions.len() - hidden);
    let rows: Vec<TextRow<7>> =
        functions.iter().map(|(id, cost)| row(profile, *id, *cost, options.folder.as_deref())).collect();
    let heads = [profile.measure().counted(), "self", "", "total", "", "self/call", "total/call"];
    let layout = LineLayout { width: options.width, colour: options.colour, are_paths: true };
    if profile.measure() == Measure::WallTime {
        write_rows(out, heads, "function", &rows, layout)?;
    } else {
        let rows: Vec<TextRow<5>> = rows.into_iter().map(TextRow::first).collect();
        write_rows(out, first(heads), "function", &rows, layout)?;
    }
    if hidden > 0 { writeln!(out, "({hidden} more)") } else { Ok(()) }
}

/// Returns the functions of a profile with their costs, sorted.
pub fn sorted_functions(profile: &Profile, by: Sort) -> Vec<(FunctionId, CallStatistics)> {
    let mut functions: Vec<(FunctionId, CallStatistics)> = Statistics::of(profile).functions().collect();
    let name = |id: FunctionId| profile.functions().function(id).full_name();
    match by {
        Sort::SelfCost => functions.sort_by_key(|(id, cost)| (Reverse((cost.self_cost, cost.total)), *id)),
        Sort::Total => functions.sort_by_key(|(id, cost)| (Reverse((cost.total, cost.self_cost)), *id)),
        Sort::Calls => functions.sort_by_key(|(id, cost)| (Reverse((cost.calls, cost.self_cost)), *id)),
        Sort::Name => functions.sort_by(|(a, _), (b, _)| name(*a).cmp(name(*b)).then(a.cmp(b))),
    }
    functions
}

fn row(profile: &Profile, id: FunctionId, cost: CallStatistics, folder: Option<&Path>) -> TextRow<7> {
    let (self_cost, self_share) = cost_and_share(profile, cost.self_cost);
    let (total, total_share) = cost_and_share(profile, cost.total);
    let each = |sum: i64, calls: u64| (per_call(profile, sum, calls), Style::Plain);
    let (name, location) = name_and_path(profile.functions().function(id), folder);
    TextRow {
        numbers: [
            (if profile.measure() == Measure::Calls { String::new() } else { calls(cost) }, Style::Plain),
            self_cost,
            self_share,
            total,
            total_share,
            each(cost.self_cost, cost.calls),
            each(cost.total, cost.primitive_calls),
        ],
        guides: String::new(),
        name: (name, Style::Plain),
        location,
    }
}

/// Formats calls as `total/primitive` under recursion.
pub(crate) fn calls(cost: CallStatistics) -> String {
    let all = count_text(cost.calls);
    if cost.calls == cost.primitive_calls { all } else { format!("{all}/{}", count_text(cost.primitive_calls)) }
}

fn cost_and_share(profile: &Profile, cost: i64) -> (StyledText, StyledText) {
    let share = share(cost, profile.total());
    let style = Style::of_share(share);
    ((profile.measure().text(float(cost)), style), (percentage(share), style))
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn per_call(profile: &Profile, sum: i64, calls: u64) -> String {
    if calls == 0 { String::new() } else { profile.measure().text(float(sum) / calls as f64) }
}
