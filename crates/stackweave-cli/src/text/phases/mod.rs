//! What phases took, as text: runs, then functions.

mod functions;
mod runs;

use std::io::{self, Write};

use clap::ValueEnum;
use stackweave_profile::Measure;
use stackweave_profile::timing::TimingReport;

use crate::text::style::Style;

pub use functions::sorted_phases;

/// Which functions come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum PhaseSort {
    /// What the function itself took
    #[default]
    #[value(alias = "self")]
    Own,
    /// What it took with all that it began
    Total,
    /// How often it was begun
    Calls,
    /// How often it failed
    Failed,
}

/// What [`write_phases`] shows of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhasesOptions {
    /// Which functions come first.
    pub sort: PhaseSort,
    /// How many functions, and how many runs.
    pub limit: Option<usize>,
    /// Whether all runs are shown, and nothing else.
    pub only_runs: bool,
    /// How many columns a line may have.
    pub width: Option<usize>,
    /// Whether the colours of a terminal are used.
    pub colour: bool,
}

impl Default for PhasesOptions {
    fn default() -> Self {
        Self { sort: PhaseSort::Own, limit: Some(30), only_runs: false, width: None, colour: false }
    }
}

/// Writes a line or more for each run, and one for each function, as `pstats` does: calls (`total/primitive` under
/// recursion), own and total time, and what only phases have, where there is any of it.
pub fn write_phases(out: &mut dyn Write, report: &TimingReport, options: &PhasesOptions) -> io::Result<()> {
    let mut phases = Phases { out, report, options };
    if options.only_runs {
        return phases.runs(None);
    }
    if !report.runs.is_empty() {
        phases.runs(options.limit)?;
        writeln!(phases.out)?;
    }
    phases.functions()
}

struct Phases<'a> {
    out: &'a mut dyn Write,
    report: &'a TimingReport,
    options: &'a PhasesOptions,
}

impl Phases<'_> {
    /// Writes the head of a part: what it is, and a word about it.
    fn head(&mut self, title: &str, more: &str) -> io::Result<()> {
        let mut line = String::new();
        Style::Head.put(&mut line, title, self.options.colour);
        line.push_str("  ");
        Style::Dim.put(&mut line, more, self.options.colour);
        writeln!(self.out, "{line}")
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people, with a few digits")]
fn time(ns: u64) -> String {
    Measure::WallTime.text(ns as f64)
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
