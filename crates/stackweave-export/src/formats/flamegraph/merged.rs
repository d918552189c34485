//! The boxes of a call tree: each path once, callees sorted by name.

use std::io::Write;

use stackweave_profile::{Children, Cost, FrameIndex, FunctionTable, Measure, NodeId, Profile};

use super::draw::write_flames;
use super::{BoxLabel, Flames, MAX_DEPTH, MIN_WIDTH, PictureBox, kind_legend};
use crate::error::ExportError;
use crate::svg::{FunctionLabel, amount, cost, percentage, plural, shade, share};

pub(super) fn write(profile: &Profile, title: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let (tree, functions) = (profile.tree(), profile.functions());
    let names = names(functions);
    let total = profile.total();
    let walk = BoxBuilder {
        children: &tree.children(),
        order: &order(&names),
        frame: &|id| tree.node(id).frame,
        width: &|id| tree.node(id).cost.total,
    };
    let (boxes, narrow) = walk.boxes(tree.nodes().len());
    let measure = profile.measure();
    let kinds = functions.functions().iter().map(|function| function.kind);
    let flames = Flames {
        title: format!("Flame graph of {title}"),
        subtitle: amount(measure, total),
        legend: kind_legend(&kinds),
        notes: profile.hidden().caption(total, measure).into_iter().collect(),
        boxes,
        narrow,
    };
    let label = |of: &PictureBox| {
        let node = &tree.nodes()[of.item as usize];
        if of.item == 0 {
            return root_label(costs(measure, node.cost, total));
        }
        let of = &names[node.frame.index()];
        let class = shade(functions.function_of(node.frame).kind, &of.name, &of.location);
        BoxLabel { function: of.clone(), costs: costs(measure, node.cost, total), class }
    };
    write_flames(&flames, &label, out)
}

/// Returns the label of the root box.
pub(super) fn root_label(costs: String) -> BoxLabel {
    BoxLabel {
        function: FunctionLabel { name: "all".to_owned(), location: String::new() },
        costs,
        class: "all".to_owned(),
    }
}

fn costs(measure: Measure, of: Cost, total: i64) -> String {
    let shares = [of.total, of.self_cost].map(|part| percentage(share(part, total)));
    let [whole, self_cost] = [of.total, of.self_cost].map(|part| cost(measure, part));
    let counted = measure.counted();
    let calls = match of.calls {
        0 => String::new(),
        calls => format!(", {}", plural(calls, counted.strip_suffix('s').unwrap_or(counted))),
    };
    format!("{whole} ({}), self {self_cost} ({}){calls}", shares[0], shares[1])
}

/// Returns the label of each frame.
pub(super) fn names(functions: &FunctionTable) -> Vec<FunctionLabel> {
    let function =
        |frame: &stackweave_profile::ProfileFrame| FunctionLabel::of(functions.function(frame.function), frame.line);
    functions.frames().iter().map(function).collect()
}

/// Returns for each frame its position in the order of names.
pub(super) fn order(names: &[FunctionLabel]) -> Vec<u32> {
    let mut sorted: Vec<usize> = (0..names.len()).collect();
    sorted.sort_by(|a, b| names[*a].cmp(&names[*b]));
    let mut order = vec![0; names.len()];
    for (position, frame) in (0..).zip(sorted) {
        order[frame] = position;
    }
    order
}

/// The tree that boxes are built from.
pub(super) struct BoxBuilder<'a> {
    pub(super) children: &'a Children,
    /// For each frame its position in the order of names.
    pub(super) order: &'a [u32],
    pub(super) frame: &'a dyn Fn(NodeId) -> FrameIndex,
    pub(super) width: &'a dyn Fn(NodeId) -> i64,
}

impl BoxBuilder<'_> {
    /// Returns the boxes of a tree with a number of nodes, callers first, and how many nodes have boxes that are too
    /// narrow. The item of a box is its node.
    #[expect(clippy::cast_possible_truncation, reason = "ids are of 32 bits")]
    pub(super) fn boxes(&self, nodes: usize) -> (Vec<PictureBox>, u64) {
        let total = (self.width)(NodeId::ROOT);
        let mut boxes = Vec::new();
        let mut waiting = vec![(NodeId::ROOT, 0_i64, 0_u32)];
        while let Some((id, left, row)) = waiting.pop() {
            let width = (self.width)(id);
            let of = PictureBox {
                left: share(left, total),
                width: if row == 0 { 1.0 } else { share(width, total) },
                row,
                item: id.index() as u32,
                is_first: row == 0,
            };
            if row > 0 && (width <= 0 || of.width < MIN_WIDTH || row > MAX_DEPTH) {
                continue;
            }
            boxes.push(of);
            let mut below: Vec<NodeId> = self.children.get(id).to_vec();
            below.sort_by_key(|child| self.order[(self.frame)(*child).index()]);
            let mut at = left;
            let first = waiting.len();
            for child in below {
                waiting.push((child, at, row + 1));
                at = at.saturating_add((self.width)(child).max(0));
            }
            waiting[first..].reverse();
        }
        let narrow = nodes - boxes.len();
        (boxes, narrow as u64)
    }
}
