//! The stacks that have most of something.

use crate::aggregate::{FrameIndex, NodeId, Profile};

/// A stack, and what it cost itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackRow {
    /// What it cost.
    pub own: i64,
    /// How many blocks.
    pub blocks: u64,
    /// Its frames in the profile's table, innermost first. None for what no frame that is seen has.
    pub frames: Vec<FrameIndex>,
}

/// The stacks of a profile that cost something themselves, the costliest first.
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
        .filter(|(_, node)| node.cost.own != 0)
        .map(|(id, node)| (id, node.cost.own, node.cost.calls))
        .collect();
    costs.sort_by_key(|(id, own, _)| (std::cmp::Reverse(*own), *id));
    costs.into_iter().map(|(id, own, blocks)| StackRow { own, blocks, frames: frames(id) }).collect()
}
