//! The call tree as JSON.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::{Value, json};
use stackweave_profile::{NodeId, Profile};

use crate::flame_json::MOST_LEVELS;
use crate::json_tree::{Nested, write_nested};
use crate::json_values::{cost, function, hidden, share, unit};
use crate::text::{TreeOptions, program_paths};

/// Writes the paths that the text shows, nested, those with the highest cost first.
pub(crate) fn write(
    out: &mut dyn Write,
    profile: &Profile,
    options: &TreeOptions,
    remarks: &[String],
) -> io::Result<()> {
    let shown = VisibleNodes::of(profile, options, remarks);
    write_nested(out, &shown, 0)?;
    writeln!(out)
}

/// The visible nodes, by their index in the tree.
struct VisibleNodes<'a> {
    profile: &'a Profile,
    children: Vec<Vec<usize>>,
    /// The number of children of a node that are hidden, and their cost.
    left_out: Vec<(usize, i64)>,
    remarks: &'a [String],
}

impl<'a> VisibleNodes<'a> {
    fn of(profile: &'a Profile, options: &TreeOptions, remarks: &'a [String]) -> Self {
        let tree = profile.tree();
        let count = tree.nodes().len();
        let mut shown = Self { profile, children: vec![Vec::new(); count], left_out: vec![(0, 0); count], remarks };
        let mut depths = vec![0_usize; count];
        let most = options.max_depth.unwrap_or(MOST_LEVELS);
        let whole = profile.total();
        let kept = if options.keeps_program { program_paths(profile, options.min_share) } else { HashSet::new() };
        let mut costliest: Vec<(NodeId, i64)> = tree.iter().map(|(id, node)| (id, node.cost.total)).collect();
        for (id, node) in tree.iter() {
            depths[id.index()] = depths[node.parent.index()] + 1;
        }
        costliest.sort_by_key(|(id, total)| (Reverse(*total), *id));
        for (id, total) in costliest {
            let parent = tree.node(id).parent.index();
            let is_great = whole == 0 || share(total, whole).as_f64().unwrap_or(0.0).abs() >= options.min_share;
            if (is_great || kept.contains(&id)) && depths[id.index()] <= most {
                shown.children[parent].push(id.index());
            } else {
                let left_out = &mut shown.left_out[parent];
                *left_out = (left_out.0 + 1, left_out.1.saturating_add(total));
            }
        }
        shown
    }
}

impl Nested for VisibleNodes<'_> {
    fn children(&self, index: usize) -> &[usize] {
        &self.children[index]
    }

    fn fields(&self, index: usize) -> Vec<(&'static str, Value)> {
        let measure = self.profile.measure();
        let node = self.profile.tree().nodes()[index];
        let mut fields = if index == NodeId::ROOT.index() {
            vec![
                ("measure", json!(measure.as_str())),
                ("unit", json!(unit(measure))),
                ("total", cost(measure, node.cost.total)),
                ("outside", cost(measure, node.cost.self_cost)),
                ("hidden", hidden(self.profile.hidden(), node.cost.total, measure)),
                ("remarks", json!(self.remarks)),
            ]
        } else {
            let of = function(self.profile.functions().function_of(node.frame));
            let named = ["name", "filename", "module", "lineno", "kind"].map(|name| (name, of[name].clone()));
            let mut fields = named.to_vec();
            fields.extend([
                ("calls", json!(node.cost.calls)),
                ("self", cost(measure, node.cost.self_cost)),
                ("total", cost(measure, node.cost.total)),
                ("share", share(node.cost.total, self.profile.total())),
            ]);
            fields
        };
        let (count, total) = self.left_out[index];
        if count > 0 {
            fields.push(("left_out", json!({"paths": count, "total": cost(measure, total)})));
        }
        fields
    }
}
