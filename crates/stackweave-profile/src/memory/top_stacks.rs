//! The stacks with the highest cost.

use crate::aggregate::{FrameIndex, NodeId, Profile};

/// A stack with its self cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackRow {
    /// The cost.
    pub self_cost: i64,
    /// The number of blocks.
    pub blocks: u64,
    /// The frames in the profile's table, innermost first. Empty for cost outside of visible frames.
    pub frames: Vec<FrameIndex>,
}

/// Returns the stacks of a profile with self costs, those with the highest cost first.
pub fn top_stacks(profile: &Profile) -> Vec<StackRow> {
    let tree = profile.tree();
    let frames = |mut id: NodeId| {
        let mut frames = Vec::new();
        while id != NodeId::ROOT {
            let node = tree.node(id);
            frames.push(node.frame);
            id = node.parent;
        }
        frames
    };
    let mut costs: Vec<(NodeId, i64, u64)> = std::iter::once((NodeId::ROOT, tree.node(NodeId::ROOT)))
        .chain(tree.iter())
        .filter(|(_, node)| node.cost.self_cost != 0)
        .map(|(id, node)| (id, node.cost.self_cost, node.cost.calls))
        .collect();
    costs.sort_by_key(|(id, own, _)| (std::cmp::Reverse(*own), *id));
    costs.into_iter().map(|(id, self_cost, blocks)| StackRow { self_cost, blocks, frames: frames(id) }).collect()
}
