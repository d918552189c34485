//! A diff of two profiles as text, the greatest change first.

use std::io::{self, Write};
use std::path::PathBuf;

use stackweave_profile::{CallStatistics, Children, Diff, DiffNode, FunctionDiff, NodeId, ValueChange};

use crate::text::location::{name_and_location, name_and_path};
use crate::text::rows::{LineLayout, StyledText, TextRow, write_rows};
use crate::text::style::Style;
use crate::text::table::Sort;
use crate::text::values::{percentage, signed_value};

/// The options of [`write_diff`].
#[derive(Clone, Debug, PartialEq)]
pub struct DiffOptions {
    /// Whether paths are compared, as an indented tree, instead of functions.
    pub by_path: bool,
    /// The compared cost of functions: [`Sort::Total`], or else the self cost.
    pub sort: Sort,
    /// The maximum number of lines.
    pub limit: Option<usize>,
    /// Smaller changes, as a share of the greater total, have no line.
    pub min_share: f64,
    /// The maximum number of columns of a line.
    pub width: Option<usize>,
    /// Whether to use colours.
    pub colour: bool,
    /// Locations are relative to this folder.
    pub folder: Option<PathBuf>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            by_path: false,
            sort: Sort::SelfCost,
            limit: Some(30),
            min_share: 0.001,
            width: None,
            colour: false,
            folder: None,
        }
    }
}

/// Writes the cost of each function, or each path, before and after, with the change.
pub fn write_diff(out: &mut dyn Write, diff: &Diff, options: &DiffOptions) -> io::Result<()> {
    let whole = diff.total();
    let least = options.min_share * whole.before.abs().max(whole.after.abs());
    let mut rows = vec![row(diff, whole, "", ("(all)".to_owned(), String::new()))];
    let lines = if options.by_path { paths(diff, least) } else { functions(diff, options, least) };
    let hidden = options.limit.map_or(0, |limit| lines.len().saturating_sub(limit));
    rows.extend(lines.into_iter().take(options.limit.unwrap_or(usize::MAX)));
    let layout = LineLayout { width: options.width, colour: options.colour, are_paths: !options.by_path };
    let name = if options.by_path { "path" } else { "function" };
    write_rows(out, ["before", "after", "change", ""], name, &rows, layout)?;
    if hidden > 0 { writeln!(out, "({hidden} more)") } else { Ok(()) }
}

fn functions(diff: &Diff, options: &DiffOptions, least: f64) -> Vec<TextRow<4>> {
    let cost = |side: Option<CallStatistics>| {
        side.map(|cost| if options.sort == Sort::Total { cost.total } else { cost.self_cost })
    };
    let change = |function: &FunctionDiff| diff.change(cost(function.before), cost(function.after));
    let mut changes: Vec<(&FunctionDiff, ValueChange)> =
        diff.by_function().iter().map(|function| (function, change(function))).collect();
    changes.retain(|(_, change)| change.difference() != 0.0 && change.difference().abs() >= least);
    changes.sort_by(|(_, a), (_, b)| b.difference().abs().total_cmp(&a.difference().abs()));
    let line = |(function, change): (&FunctionDiff, ValueChange)| {
        let mut row = row(
            diff,
            change,
            "",
            name_and_path(diff.functions().function(function.function), options.folder.as_deref()),
        );
        mark(&mut row, function.before.is_some(), function.after.is_some());
        row
    };
    changes.into_iter().map(line).collect()
}

/// Deeper levels are not indented further.
const DEEPEST: usize = 100;

/// Returns the paths below which a cost changed, indented.
fn paths(diff: &Diff, least: f64) -> Vec<TextRow<4>> {
    let children = diff.children();
    let matters = changed_below(diff, least);
    let mut rows = Vec::new();
    let mut waiting = Vec::new();
    push_children(diff, &children, (NodeId::ROOT, 0), &mut waiting);
    while let Some((id, depth)) = waiting.pop() {
        if !matters[id.index()] {
            continue;
        }
        let node = diff.nodes()[id.index()];
        let functions = diff.functions();
        let name = name_and_location(functions, functions.frame(node.frame));
        let mut row = row(diff, total(diff, id), &"  ".repeat(depth.min(DEEPEST)), name);
        mark(&mut row, node.before.is_some(), node.after.is_some());
        rows.push(row);
        push_children(diff, &children, (id, depth + 1), &mut waiting);
    }
    rows
}

fn push_children(diff: &Diff, children: &Children, at: (NodeId, usize), waiting: &mut Vec<(NodeId, usize)>) {
    let mut below = children.get(at.0).to_vec();
    below.sort_by(|a, b| total(diff, *a).difference().abs().total_cmp(&total(diff, *b).difference().abs()));
    waiting.extend(below.into_iter().map(|id| (id, at.1)));
}

fn total(diff: &Diff, id: NodeId) -> ValueChange {
    total_of(diff, &diff.nodes()[id.index()])
}

fn total_of(diff: &Diff, node: &DiffNode) -> ValueChange {
    diff.change(node.before.map(|cost| cost.total), node.after.map(|cost| cost.total))
}

/// Returns for each node whether it or one of its descendants changed by at least `least`.
fn changed_below(diff: &Diff, least: f64) -> Vec<bool> {
    let nodes = diff.nodes();
    let mut matters = vec![false; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let change = total_of(diff, node).difference();
        matters[at] |= change != 0.0 && change.abs() >= least;
        if matters[at] {
            matters[node.parent.index()] = true;
        }
    }
    matters
}

fn row(diff: &Diff, change: ValueChange, guides: &str, (name, location): (String, String)) -> TextRow<4> {
    let difference = change.difference();
    let style = match difference {
        more if more > 0.0 => Style::Hot,
        less if less < 0.0 => Style::Good,
        _ => Style::Plain,
    };
    let plain = |text: String| -> StyledText { (text, Style::Plain) };
    let ratio = change.ratio().map_or_else(String::new, |ratio| format!("{:+.1}%", (ratio - 1.0) * 100.0));
    let numbers = if diff.is_normalised() {
        let sign = if difference > 0.0 { "+" } else { "" };
        [percentage(change.before), percentage(change.after), format!("{sign}{}", percentage(difference))]
    } else {
        let measure = diff.measure();
        [measure.text(change.before), measure.text(change.after), signed_value(measure, difference)]
    };
    let [before, after, difference] = numbers;
    TextRow {
        numbers: [plain(before), plain(after), (difference, style), (ratio, style)],
        guides: guides.to_owned(),
        name: plain(name),
        location,
    }
}

/// Marks a row of which only one of the profiles has the function.
fn mark(row: &mut TextRow<4>, is_before: bool, is_after: bool) {
    if is_before != is_after {
        let (column, word) = if is_after { (0, "new") } else { (1, "gone") };
        row.numbers[column].0 = "-".into();
        row.numbers[3].0 = word.into();
    }
}
