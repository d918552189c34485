//! Phases as text: runs, then functions.

mod functions;
mod runs;

use std::io::{self, Write};

use clap::ValueEnum;
use stackweave_profile::Measure;
use stackweave_profile::timing::TimingReport;

use crate::text::style::Style;

pub use functions::sorted_phases;

/// The column that functions are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum PhaseSort {
    /// Self time
    #[default]
    #[value(name = "self")]
    SelfCost,
    /// Total time, with nested phases
    Total,
    /// Number of calls
    Calls,
    /// Number of failures
    Failed,
}

/// The options of [`write_phases`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhasesOptions {
    /// The column that functions are sorted by.
    pub sort: PhaseSort,
    /// The maximum number of functions, and of runs.
    pub limit: Option<usize>,
    /// Whether only runs are shown, all of them.
    pub only_runs: bool,
    /// The maximum number of columns of a line.
    pub width: Option<usize>,
    /// Whether to use colours.
    pub colour: bool,
}

impl Default for PhasesOptions {
    fn default() -> Self {
        Self { sort: PhaseSort::SelfCost, limit: Some(30), only_runs: false, width: None, colour: false }
    }
}

/// Writes a line or more for each run, and one for each function, as `pstats` does: calls (`total/primitive` under
/// recursion), self and total time, and the columns that only phases have, if they are not empty.
pub fn write_phases(out: &mut dyn Write, report: &TimingReport, options: &PhasesOptions) -> io::Result<()> {
    let mut phases = PhasesText { out, report, options };
    if options.only_runs {
        return phases.runs(None);
    }
    if !report.runs.is_empty() {
        phases.runs(options.limit)?;
        writeln!(phases.out)?;
    }
    phases.functions()
}

struct PhasesText<'a> {
    out: &'a mut dyn Write,
    report: &'a TimingReport,
    options: &'a PhasesOptions,
}

impl PhasesText<'_> {
    /// Writes a heading.
    fn head(&mut self, title: &str, more: &str) -> io::Result<()> {
        let mut line = String::new();
        Style::Head.put(&mut line, title, self.options.colour);
        line.push_str("  ");
        Style::Dim.put(&mut line, more, self.options.colour);
        writeln!(self.out, "{line}")
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn time(ns: u64) -> String {
    Measure::WallTime.text(ns as f64)
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
