//! The functions of phases.

use std::cmp::Reverse;
use std::io;

use stackweave_profile::Measure;
use stackweave_profile::timing::{PhaseRow, TimingReport};

use super::{PhaseSort, PhasesText, counted};
use crate::text::location::name_and_path;
use crate::text::rows::{LineLayout, StyledText, TextRow, write_rows};
use crate::text::style::{Style, width};
use crate::text::table::calls;
use crate::text::tree::{count_text, float};
use crate::text::values::{count, percentage, share};

const HEADS: [&str; 11] =
    ["calls", "self", "", "total", "", "self/call", "total/call", "failed", "left open", "bytecode", "ns/bytecode"];
/// The columns in the order in which they are left out if there is not enough room for names.
const GIVE_WAY: [usize; 8] = [6, 5, 4, 2, 8, 9, 10, 7];
/// The minimum number of columns for names and locations.
const MIN_NAME_WIDTH: usize = 34;

impl PhasesText<'_> {
    pub(super) fn functions(&mut self) -> io::Result<()> {
        let mut rows = sorted_phases(self.report, self.options.sort);
        let hidden = self.options.limit.map_or(0, |limit| rows.len().saturating_sub(limit));
        let functions = counted(rows.len(), "function", "functions");
        let total = Measure::WallTime.text(float(self.report.total_ns));
        rows.truncate(rows.len() - hidden);
        self.head("Phases", &format!("{functions}, {total} in total"))?;
        let mut rows: Vec<TextRow<11>> = rows.into_iter().map(|row| self.row(row)).collect();
        let mut heads = HEADS;
        for column in 7..11 {
            if rows.iter().all(|row| row.numbers[column].0.is_empty()) {
                leave_out(&mut heads, &mut rows, column);
            }
        }
        for column in GIVE_WAY {
            if self.options.width.is_some_and(|width| numbers_width(&rows, heads) + MIN_NAME_WIDTH > width) {
                leave_out(&mut heads, &mut rows, column);
            }
        }
        let layout = LineLayout { width: self.options.width, colour: self.options.colour, are_paths: true };
        write_rows(self.out, heads, "function", &rows, layout)?;
        if hidden > 0 { writeln!(self.out, "({hidden} more)") } else { Ok(()) }
    }

    fn row(&self, row: &PhaseRow) -> TextRow<11> {
        let cost = row.statistics;
        let shared = |ns: i64| {
            let share = share(ns, self.report.total_ns);
            let style = Style::of_share(share);
            [(Measure::WallTime.text(float(ns)), style), (percentage(share), style)]
        };
        let each = |sum: i64, calls: u64| plain(per_call(sum, calls));
        let ([self_cost, self_share], [total, total_share]) = (shared(cost.self_cost), shared(cost.total));
        let (name, location) = name_and_path(self.report.functions.function(row.function), None);
        TextRow {
            numbers: [
                plain(calls(cost)),
                self_cost,
                self_share,
                total,
                total_share,
                each(cost.self_cost, cost.calls),
                each(cost.total, cost.primitive_calls),
                (count_text(row.failed), Style::Hot),
                (count_text(row.left_open), Style::Warm),
                plain(row.bytecode_count.map_or_else(String::new, count_text)),
                plain(row.ns_per_bytecode().map_or_else(String::new, |ns| count(ns.round()))),
            ],
            guides: String::new(),
            name: (name, Style::Plain),
            location,
        }
    }
}

/// Returns the rows of a report, sorted.
pub fn sorted_phases(report: &TimingReport, by: PhaseSort) -> Vec<&PhaseRow> {
    let key = |row: &PhaseRow| {
        let cost = row.statistics;
        match by {
            PhaseSort::SelfCost => (cost.self_cost, cost.total),
            PhaseSort::Total => (cost.total, cost.self_cost),
            PhaseSort::Calls => (cost.calls.cast_signed(), cost.self_cost),
            PhaseSort::Failed => (row.failed.cast_signed(), cost.self_cost),
        }
    };
    let mut rows: Vec<&PhaseRow> = report.rows.iter().collect();
    rows.sort_by_key(|row| (Reverse(key(row)), row.function));
    rows
}

fn leave_out(heads: &mut [&str; 11], rows: &mut [TextRow<11>], column: usize) {
    heads[column] = "";
    for row in rows {
        row.numbers[column].0.clear();
    }
}

/// Returns the width of the columns of numbers, with the spaces between them.
fn numbers_width(rows: &[TextRow<11>], heads: [&str; 11]) -> usize {
    let of_column = |column: usize| {
        let cells = rows.iter().map(|row| width(&row.numbers[column].0));
        cells.chain([width(heads[column])]).max().filter(|width| *width > 0).map_or(0, |width| width + 2)
    };
    (0..11).map(of_column).sum()
}

fn plain(text: String) -> StyledText {
    (text, Style::Plain)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn per_call(sum: i64, calls: u64) -> String {
    if calls == 0 { String::new() } else { Measure::WallTime.text(float(sum) / calls as f64) }
}
