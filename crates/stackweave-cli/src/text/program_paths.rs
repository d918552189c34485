//! Paths to functions of the program that have a line although they are cheap.
//!
//! In a server that is mostly idle, or mostly libraries, each function of the program takes less than any useful limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use stackweave_profile::{CodeOrigin, FunctionId, NodeId, Profile};

use crate::text::values::share;

/// A tree with at least this many functions of the program above the limit needs no further ones.
const ENOUGH: usize = 4;
/// The maximum number of further functions.
const MOST: usize = 8;

/// Returns the nodes on the paths to the functions of the program with the highest total, if too few of them have
/// `min_share` of the total.
pub(crate) fn program_paths(profile: &Profile, min_share: f64) -> HashSet<NodeId> {
    let (tree, functions, whole) = (profile.tree(), profile.functions(), profile.total());
    let mut above: HashSet<FunctionId> = HashSet::new();
    let mut below: BTreeMap<FunctionId, NodeId> = BTreeMap::new();
    for (id, node) in tree.iter() {
        let function = functions.frame(node.frame).function;
        if functions.function(function).origin != CodeOrigin::Program || node.cost.total <= 0 {
            continue;
        }
        if share(node.cost.total, whole) >= min_share {
            above.insert(function);
            if above.len() >= ENOUGH {
                return HashSet::new();
            }
        } else {
            let best = below.entry(function).or_insert(id);
            if tree.node(*best).cost.total < node.cost.total {
                *best = id;
            }
        }
    }
    below.retain(|function, _| !above.contains(function));
    let mut ends: Vec<NodeId> = below.into_values().collect();
    ends.sort_by_key(|id| (Reverse(tree.node(*id).cost.total), *id));
    let mut paths = HashSet::new();
    for end in ends.into_iter().take(MOST) {
        let mut id = end;
        while id != NodeId::ROOT && paths.insert(id) {
            id = tree.node(id).parent;
        }
    }
    paths
}
