//! Trees of spans: those of profiles, and those that a script of `tests/python` has rebuilt from an export.

use std::collections::BTreeMap;

use serde_json::Value;
use stackweave_profile::{AggregateOptions, Measure, Profile, aggregate};
use stackweave_recording::Recording;

/// Calls, self and total nanoseconds by path, outermost name first.
pub type Tree = BTreeMap<Vec<String>, (u64, i64, i64)>;

/// Returns the tree of a recording's profile.
pub fn profiled(recording: &Recording, part: &AggregateOptions) -> Tree {
    let part = AggregateOptions { measure: Some(Measure::WallTime), ..part.clone() };
    let profile = aggregate(recording.processes(), &part, None, &mut |_| {}).unwrap().merged();
    tree_of(&profile)
}

/// Returns the tree of a profile; paths of equal names are merged.
pub fn tree_of(profile: &Profile) -> Tree {
    let tree = profile.tree();
    let mut paths: Vec<Vec<String>> = vec![Vec::new(); tree.nodes().len()];
    let mut found = Tree::new();
    for (id, node) in tree.iter() {
        let mut path = paths[node.parent.index()].clone();
        path.push(profile.functions().function_of(node.frame).full_name().to_string());
        let sum = found.entry(path.clone()).or_default();
        *sum = (sum.0 + node.cost.calls, sum.1 + node.cost.self_cost, sum.2 + node.cost.total);
        paths[id.index()] = path;
    }
    found
}

/// Reads the tree that a script has printed as JSON: a list of paths with calls, self and total nanoseconds.
pub fn printed(tree: &Value) -> Tree {
    let row = |row: &Value| {
        let path = row[0].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        (path, (row[1].as_u64().unwrap(), row[2].as_i64().unwrap(), row[3].as_i64().unwrap()))
    };
    tree.as_array().unwrap().iter().map(row).collect()
}
