//! Trees of spans: as a profile has them, and as a script of `tests/python` has rebuilt them from an export.

use std::collections::BTreeMap;

use serde_json::Value;
use stackweave_profile::{AggregateOptions, Measure, Profile, aggregate};
use stackweave_recording::Recording;

/// Calls, own and total nanoseconds by path, outermost name first.
pub type Tree = BTreeMap<Vec<String>, (u64, i64, i64)>;

/// The tree that the profile of a recording has.
pub fn profiled(recording: &Recording, part: &AggregateOptions) -> Tree {
    let part = AggregateOptions { measure: Some(Measure::WallTime), ..part.clone() };
    let profile = aggregate(recording.processes(), &part, None, &mut |_| {}).unwrap().merged();
    tree_of(&profile)
}

/// Paths of equal names are one.
pub fn tree_of(profile: &Profile) -> Tree {
    let tree = profile.tree();
    let mut paths: Vec<Vec<String>> = vec![Vec::new(); tree.nodes().len()];
    let mut found = Tree::new();
    for (id, node) in tree.iter() {
        let mut path = paths[node.parent.index()].clone();
        path.push(profile.functions().function_of(node.frame).full_name().to_string());
        let sum = found.entry(path.clone()).or_default();
        *sum = (sum.0 + node.cost.calls, sum.1 + node.cost.own, sum.2 + node.cost.total);
        paths[id.index()] = path;
    }
    found
}

/// The tree that a script has printed as JSON: a list of paths with calls, own and total nanoseconds.
pub fn printed(tree: &Value) -> Tree {
    let row = |row: &Value| {
        let path = row[0].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        (path, (row[1].as_u64().unwrap(), row[2].as_i64().unwrap(), row[3].as_i64().unwrap()))
    };
    tree.as_array().unwrap().iter().map(row).collect()
}
