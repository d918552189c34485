//! The call tree with its costs.

use crate::aggregate::function::FrameIndex;
use crate::aggregate::node_table::NodeTable;

/// A node of a tree. An id is valid only for its [`CallTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The root, which has no frame. Its self cost is the cost outside of all frames.
    pub const ROOT: Self = Self(0);

    /// Returns the index in [`CallTree::nodes`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The cost of a frame. Values that are too great are saturated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of calls; for samples, how often it was the innermost frame.
    pub calls: u64,
    /// The cost without callees.
    pub self_cost: i64,
    /// The cost with callees.
    pub total: i64,
}

impl Cost {
    pub(crate) const fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.self_cost = self.self_cost.saturating_add(other.self_cost);
        self.total = self.total.saturating_add(other.total);
    }
}

/// A frame below its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The caller, whose id is smaller; the root's is the root.
    pub parent: NodeId,
    /// The frame. Without meaning for the root.
    pub frame: FrameIndex,
    /// The cost on this path.
    pub cost: Cost,
}

/// A tree of frames: one node for each path, whatever the number of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTree {
    nodes: Vec<Node>,
}

impl CallTree {
    /// Returns all nodes by id, callers before callees. The first is the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the node with this id.
    ///
    /// # Panics
    /// If another tree gave the id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Returns the total cost.
    pub fn total(&self) -> i64 {
        self.nodes[0].cost.total
    }

    /// Returns all nodes but the root, callers before callees.
    #[expect(clippy::cast_possible_truncation, reason = "ids have 32 bits")]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().skip(1).map(|(id, node)| (NodeId(id as u32), node))
    }

    /// Returns the callees of all nodes.
    pub fn children(&self) -> Children {
        Children::of(self.nodes.iter().map(|node| node.parent.0))
    }
}

impl Default for CallTree {
    fn default() -> Self {
        CallTreeBuilder::default().finish()
    }
}

/// The children of all nodes.
#[derive(Clone, Debug)]
pub struct Children {
    /// For each node the index of its first child; and the end.
    starts: Vec<u32>,
    ids: Vec<NodeId>,
}

impl Children {
    #[expect(clippy::cast_possible_truncation, reason = "ids have 32 bits")]
    pub(crate) fn of(parents: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let mut starts = vec![0; parents.len() + 2];
        for parent in parents.clone().skip(1) {
            starts[parent as usize + 2] += 1;
        }
        for index in 2..starts.len() {
            starts[index] += starts[index - 1];
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

    /// Returns the children of a node, in the order in which they were added.
    pub fn get(&self, id: NodeId) -> &[NodeId] {
        &self.ids[self.starts[id.index()] as usize..self.starts[id.index() + 1] as usize]
    }
}

/// Builds a tree.
#[derive(Clone, Debug)]
pub(crate) struct CallTreeBuilder {
    nodes: Vec<Node>,
    table: NodeTable,
}

impl Default for CallTreeBuilder {
    fn default() -> Self {
        let root = Node { parent: NodeId::ROOT, frame: FrameIndex(0), cost: Cost::default() };
        Self { nodes: vec![root], table: NodeTable::default() }
    }
}

impl From<CallTree> for CallTreeBuilder {
    fn from(tree: CallTree) -> Self {
        Self { table: NodeTable::of(&tree.nodes), nodes: tree.nodes }
    }
}

impl CallTreeBuilder {
    /// Returns the node of `frame` under `parent`; a new one is added.
    #[expect(clippy::cast_possible_truncation, reason = "2^32 nodes do not fit into memory")]
    pub(crate) fn child(&mut self, parent: NodeId, frame: FrameIndex) -> NodeId {
        let new = self.nodes.len() as u32;
        let id = self.table.find_or_insert(&self.nodes, (parent, frame), new);
        if id.0 == new {
            self.nodes.push(Node { parent, frame, cost: Cost::default() });
        }
        id
    }

    /// Adds calls and self cost; totals are computed at the end.
    pub(crate) fn add(&mut self, id: NodeId, calls: u64, self_cost: i64) {
        self.nodes[id.index()].cost.add(Cost { calls, self_cost, total: 0 });
    }

    /// Returns the sum of all self costs.
    pub(crate) fn total(&self) -> i64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.cost.self_cost))
    }

    /// Adds all of `tree`, whose frames have the indexes `frames` here. Returns for each of its nodes the node here.
    pub(crate) fn add_tree(&mut self, tree: &CallTree, frames: &[FrameIndex]) -> Vec<NodeId> {
        let mut ids = vec![NodeId::ROOT; tree.nodes.len()];
        for (id, node) in tree.iter() {
            let child = self.child(ids[node.parent.index()], frames[node.frame.index()]);
            ids[id.index()] = child;
            self.add(child, node.cost.calls, node.cost.self_cost);
        }
        let root = tree.node(NodeId::ROOT).cost;
        self.add(NodeId::ROOT, root.calls, root.self_cost);
        ids
    }

    pub(crate) fn finish(self) -> CallTree {
        let mut nodes = self.nodes;
        for node in &mut nodes {
            node.cost.total = node.cost.self_cost;
        }
        for id in (1..nodes.len()).rev() {
            let Node { parent, cost, .. } = nodes[id];
            let above = &mut nodes[parent.index()].cost.total;
            *above = above.saturating_add(cost.total);
        }
        CallTree { nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_self_costs_plus_those_of_children() {
        let mut builder = CallTreeBuilder::default();
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
    fn children_are_in_the_order_of_their_ids() {
        let children = Children::of([0, 0, 1, 0, 1, 3].into_iter());
        let ids = |id| children.get(NodeId(id)).iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!([ids(0), ids(1), ids(2), ids(3)], [vec![1, 3], vec![2, 4], vec![], vec![5]]);
        assert!(CallTree::default().children().get(NodeId::ROOT).is_empty());
    }
}
