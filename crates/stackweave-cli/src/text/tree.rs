//! The call tree, indented.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, Write};

use stackweave_profile::{Children, Measure, NodeId, Profile};

use crate::text::location::name_and_location;
use crate::text::program_paths::program_paths;
use crate::text::rows::{LineLayout, TextRow, write_rows};
use crate::text::style::{Style, width};
use crate::text::values::{count, percentage, share};

/// The options of [`write_tree`].
#[derive(Clone, Debug, PartialEq)]
pub struct TreeOptions {
    /// The maximum number of levels.
    pub max_depth: Option<usize>,
    /// Paths with a smaller share of the total, from 0 to 1, have no line of their own.
    pub min_share: f64,
    /// Whether some functions of the program have a line in any case, if few of them have that share.
    pub keeps_program: bool,
    /// The maximum number of columns of a line.
    pub width: Option<usize>,
    /// Whether to use colours.
    pub colour: bool,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self { max_depth: None, min_share: 0.005, keeps_program: true, width: None, colour: false }
    }
}

/// Writes each path with its total and self cost, share and calls; those with the highest cost first.
pub fn write_tree(out: &mut dyn Write, profile: &Profile, options: &TreeOptions) -> io::Result<()> {
    let kept = if options.keeps_program { program_paths(profile, options.min_share) } else { HashSet::new() };
    let mut lines = TreeLines { profile, children: profile.tree().children(), kept, options, rows: Vec::new() };
    lines.collect();
    let rows = lines.rows;
    let layout = LineLayout { width: options.width, colour: options.colour, are_paths: false };
    write_rows(out, ["total", "share", "self", profile.measure().counted()], "function", &rows, layout)
}

/// Deeper levels are not indented further.
const DEEPEST: usize = 100;

struct TreeLines<'a> {
    profile: &'a Profile,
    children: Children,
    /// Nodes that have a line whatever their share is.
    kept: HashSet<NodeId>,
    options: &'a TreeOptions,
    rows: Vec<TextRow<4>>,
}

/// A line that is not written yet.
enum UnwrittenLine {
    Node { id: NodeId, depth: usize, before: String, branch: &'static str },
    Others { count: usize, total: i64, guides: String },
}

impl TreeLines<'_> {
    fn collect(&mut self) {
        let mut waiting = Vec::new();
        self.push_children(NodeId::ROOT, 0, "", &mut waiting);
        while let Some(next) = waiting.pop() {
            match next {
                UnwrittenLine::Node { id, depth, before, branch } => {
                    self.put_node(id, depth, &before, branch);
                    let below = match branch {
                        _ if depth >= DEEPEST => "",
                        "" => "",
                        "└─ " => "   ",
                        _ => "│  ",
                    };
                    self.push_children(id, depth + 1, &format!("{before}{below}"), &mut waiting);
                }
                UnwrittenLine::Others { count, total, guides } => self.put_others(count, total, guides),
            }
        }
        let hidden = self.profile.without_frame();
        if hidden != 0 {
            let mut row = self.row(hidden, hidden, String::new());
            row.name = ("(outside the visible frames)".to_owned(), Style::Dim);
            self.rows.push(row);
        }
    }

    /// Pushes the callees of a node to the stack, the one with the highest cost on top.
    fn push_children(&self, id: NodeId, depth: usize, before: &str, waiting: &mut Vec<UnwrittenLine>) {
        let tree = self.profile.tree();
        let total = |id: &NodeId| tree.node(*id).cost.total;
        let is_deep = self.options.max_depth.is_some_and(|most| depth >= most);
        let whole = self.profile.total();
        let is_great = |id: &NodeId| whole == 0 || share(total(id), whole).abs() >= self.options.min_share;
        let is_shown = |id: &&NodeId| !is_deep && (is_great(id) || self.kept.contains(id));
        let (mut shown, small): (Vec<NodeId>, Vec<NodeId>) = self.children.get(id).iter().partition(is_shown);
        if !small.is_empty() {
            let total = small.iter().map(total).fold(0, i64::saturating_add);
            let guides = if depth == 0 { String::new() } else { format!("{before}└─ ") };
            waiting.push(UnwrittenLine::Others { count: small.len(), total, guides });
        }
        shown.sort_by_key(|id| (Reverse(total(id)), *id));
        let last = if small.is_empty() { shown.last().copied() } else { None };
        for id in shown.into_iter().rev() {
            let branch = match depth {
                0 => "",
                _ if Some(id) == last => "└─ ",
                _ => "├─ ",
            };
            waiting.push(UnwrittenLine::Node { id, depth, before: before.to_owned(), branch });
        }
    }

    fn put_node(&mut self, id: NodeId, depth: usize, before: &str, branch: &str) {
        let node = self.profile.tree().node(id);
        let guides = self.guides(depth, format!("{before}{branch}"));
        let mut row = self.row(node.cost.total, node.cost.self_cost, guides);
        if self.profile.measure() != Measure::Calls {
            row.numbers[3].0 = count_text(node.cost.calls);
        }
        let functions = self.profile.functions();
        let (name, location) = name_and_location(functions, functions.frame(node.frame));
        (row.name.0, row.location) = (name, location);
        self.rows.push(row);
    }

    fn put_others(&mut self, count: usize, total: i64, guides: String) {
        let mut row = self.row(total, 0, guides);
        row.numbers[2].0.clear();
        row.numbers[3].0.clear();
        row.name = (format!("({count} more)"), Style::Dim);
        self.rows.push(row);
    }

    fn row(&self, total: i64, self_cost: i64, guides: String) -> TextRow<4> {
        let measure = self.profile.measure();
        let whole = self.profile.total();
        let style = Style::of_share(share(total, whole));
        let self_style = Style::of_share(share(self_cost, whole));
        TextRow {
            numbers: [
                (measure.text(float(total)), style),
                (percentage(share(total, whole)), style),
                (measure.text(float(self_cost)), self_style),
                (String::new(), Style::Plain),
            ],
            guides,
            name: (String::new(), if style == Style::Hot { Style::Head } else { Style::Plain }),
            location: String::new(),
        }
    }

    /// Returns the guides before a name; very deep levels are numbered instead.
    fn guides(&self, depth: usize, guides: String) -> String {
        let most = self.options.width.map_or(usize::MAX, |width| width / 2);
        if depth <= DEEPEST && width(&guides) <= most { guides } else { format!("[{depth}] ") }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(crate) const fn float(value: i64) -> f64 {
    value as f64
}

/// Formats a number of calls; nothing for 0, as of a frame that only had callees.
#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 do not happen")]
pub(crate) fn count_text(calls: u64) -> String {
    if calls == 0 { String::new() } else { count(calls as f64) }
}
