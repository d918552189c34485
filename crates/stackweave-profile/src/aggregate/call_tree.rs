//! Who called whom, and what it cost.

use crate::aggregate::function::FrameIndex;
use crate::word_hash::WordMap;

/// A node of a tree. An id means something only to the [`CallTree`] that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// What stands above everything: it has no frame. Its own cost is what has no place in the tree.
    pub const ROOT: Self = Self(0);

    /// Its place in [`CallTree::nodes`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a place in code cost. What is too great for its type is the greatest there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How often it was called; where stacks were seen, how often it was the innermost frame.
    pub calls: u64,
    /// What it cost itself, without what it called.
    pub own: i64,
    /// What it cost with all that it called.
    pub total: i64,
}

impl Cost {
    pub(crate) const fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.own = self.own.saturating_add(other.own);
        self.total = self.total.saturating_add(other.total);
    }
}

/// A frame under the frames that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its caller, whose id is smaller; the root's is the root.
    pub parent: NodeId,
    /// What it is. Without meaning for the root.
    pub frame: FrameIndex,
    /// What it cost on this path.
    pub cost: Cost,
}

/// A tree of frames: one node for each path, whatever the number of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTree {
    nodes: Vec<Node>,
}

impl CallTree {
    /// Every node, by id, callers before what they call. The first is the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node with this id.
    ///
    /// # Panics
    /// If another tree gave the id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// What all of it cost.
    pub fn total(&self) -> i64 {
        self.nodes[0].cost.total
    }

    /// Every node but the root, callers before what they call.
    #[expect(clippy::cast_possible_truncation, reason = "the builder gives ids of 32 bits")]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().skip(1).map(|(id, node)| (NodeId(id as u32), node))
    }

    /// Who is called by whom.
    pub fn children(&self) -> Children {
        Children::of(self.nodes.iter().map(|node| node.parent.0))
    }
}

impl Default for CallTree {
    fn default() -> Self {
        TreeBuilder::default().finish()
    }
}

/// The nodes under each node.
#[derive(Clone, Debug)]
pub struct Children {
    /// For each node where its children begin; one more at the end.
    starts: Vec<u32>,
    ids: Vec<NodeId>,
}

impl Children {
    #[expect(clippy::cast_possible_truncation, reason = "ids are of 32 bits")]
    pub(crate) fn of(parents: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let mut starts = vec![0; parents.len() + 2];
        for parent in parents.clone().skip(1) {
            starts[parent as usize + 2] += 1;
        }
        for place in 2..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut ids = vec![NodeId::ROOT; parents.len().saturating_sub(1)];
        for (id, parent) in parents.enumerate().skip(1) {
            let next = &mut starts[parent as usize + 1];
            ids[*next as usize] = NodeId(id as u32);
            *next += 1;
        }
        starts.pop();
        Self { starts, ids }
    }

    /// The nodes under this one, in the order in which they were first met.
    pub fn get(&self, id: NodeId) -> &[NodeId] {
        &self.ids[self.starts[id.index()] as usize..self.starts[id.index() + 1] as usize]
    }
}

/// A tree that grows.
#[derive(Clone, Debug)]
pub(crate) struct TreeBuilder {
    nodes: Vec<Node>,
    by_frame: WordMap<u64, NodeId>,
}

impl Default for TreeBuilder {
    fn default() -> Self {
        let root = Node { parent: NodeId::ROOT, frame: FrameIndex(0), cost: Cost::default() };
        Self { nodes: vec![root], by_frame: WordMap::default() }
    }
}

impl From<CallTree> for TreeBuilder {
    fn from(tree: CallTree) -> Self {
        let by_frame = tree.iter().map(|(id, node)| (key(node.parent, node.frame), id)).collect();
        Self { by_frame, nodes: tree.nodes }
    }
}

impl TreeBuilder {
    /// The node of `frame` under `parent`.
    #[expect(clippy::cast_possible_truncation, reason = "2^32 nodes do not fit into memory")]
    pub(crate) fn child(&mut self, parent: NodeId, frame: FrameIndex) -> NodeId {
        *self.by_frame.entry(key(parent, frame)).or_insert_with(|| {
            self.nodes.push(Node { parent, frame, cost: Cost::default() });
            NodeId((self.nodes.len() - 1) as u32)
        })
    }

    /// Adds calls and own cost; totals are made of these in the end.
    pub(crate) fn add(&mut self, id: NodeId, calls: u64, own: i64) {
        self.nodes[id.index()].cost.add(Cost { calls, own, total: 0 });
    }

    /// Adds the whole of `tree`, each of whose frames is here the one that `frames` says. For each of its nodes, the
    /// node here.
    pub(crate) fn add_tree(&mut self, tree: &CallTree, frames: &[FrameIndex]) -> Vec<NodeId> {
        let mut places = vec![NodeId::ROOT; tree.nodes.len()];
        for (id, node) in tree.iter() {
            let place = self.child(places[node.parent.index()], frames[node.frame.index()]);
            places[id.index()] = place;
            self.add(place, node.cost.calls, node.cost.own);
        }
        let root = tree.node(NodeId::ROOT).cost;
        self.add(NodeId::ROOT, root.calls, root.own);
        places
    }

    pub(crate) fn finish(self) -> CallTree {
        let mut nodes = self.nodes;
        for node in &mut nodes {
            node.cost.total = node.cost.own;
        }
        for id in (1..nodes.len()).rev() {
            let Node { parent, cost, .. } = nodes[id];
            let above = &mut nodes[parent.index()].cost.total;
            *above = above.saturating_add(cost.total);
        }
        CallTree { nodes }
    }
}

const fn key(parent: NodeId, frame: FrameIndex) -> u64 {
    (parent.0 as u64) << 32 | frame.0 as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_own_costs_and_those_below() {
        let mut builder = TreeBuilder::default();
        let a = builder.child(NodeId::ROOT, FrameIndex(7));
        let b = builder.child(a, FrameIndex(8));
        let again = builder.child(b, FrameIndex(7));
        assert_eq!(builder.child(a, FrameIndex(8)), b);
        for (id, own) in [(a, 1), (b, 10), (again, 100), (NodeId::ROOT, 1000)] {
            builder.add(id, 1, own);
        }
        let tree = builder.finish();
        assert_eq!(tree.nodes().iter().map(|node| node.cost.total).collect::<Vec<_>>(), [1111, 111, 110, 100]);
        let children = tree.children();
        assert_eq!((children.get(NodeId::ROOT), children.get(a), children.get(again)), (&[a][..], &[b][..], &[][..]));
    }

    #[test]
    fn children_come_in_the_order_of_their_ids() {
        let children = Children::of([0, 0, 1, 0, 1, 3].into_iter());
        let ids = |id| children.get(NodeId(id)).iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!([ids(0), ids(1), ids(2), ids(3)], [vec![1, 3], vec![2, 4], vec![], vec![5]]);
        assert!(CallTree::default().children().get(NodeId::ROOT).is_empty());
    }
}
