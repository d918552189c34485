//! The call tree of allocations.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::{StackUsage, full_name, visible_frames};
use crate::{Frame, FrameKind};

/// A function on a path of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageNode {
    /// `None` for the program, which is the root.
    pub frame: Option<Arc<Frame>>,
    /// The bytes with callees.
    pub total: i64,
    /// The bytes of its own allocations.
    pub self_cost: i64,
    /// The blocks with callees.
    pub blocks: i64,
    /// The callees, those with the most bytes first: indexes of [`UsageTree::nodes`].
    pub children: Vec<usize>,
}

/// A call tree. The first node is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageTree {
    nodes: Vec<UsageNode>,
}

/// The identity of a node: calls from one line are one node.
type NodeKey<'a> = (usize, FrameKind, &'a str, Option<&'a str>, Option<u32>, Option<&'a str>);

impl UsageTree {
    /// Returns the tree of these stacks, without the interpreter's frames unless `with_all_frames` is set.
    pub fn of(stacks: &[StackUsage], with_all_frames: bool) -> Self {
        let mut nodes = vec![UsageNode::default()];
        let mut known: HashMap<NodeKey<'_>, usize> = HashMap::new();
        for stack in stacks {
            let frames: Vec<&Arc<Frame>> =
                if with_all_frames { stack.frames.iter().collect() } else { visible_frames(&stack.frames).collect() };
            let mut at = 0;
            nodes[at].add(stack);
            for frame in frames.into_iter().rev() {
                at = *known.entry(key(at, frame)).or_insert_with(|| {
                    let made = nodes.len();
                    nodes[at].children.push(made);
                    nodes.push(UsageNode { frame: Some(Arc::clone(frame)), ..UsageNode::default() });
                    made
                });
                nodes[at].add(stack);
            }
            nodes[at].self_cost = nodes[at].self_cost.saturating_add(stack.bytes);
        }
        let totals: Vec<i64> = nodes.iter().map(|node| node.total).collect();
        for node in &mut nodes {
            node.children.sort_by_key(|child| Reverse(totals[*child]));
        }
        Self { nodes }
    }

    /// Returns all nodes, each after its caller.
    pub fn nodes(&self) -> &[UsageNode] {
        &self.nodes
    }
}

impl UsageNode {
    /// Returns the name of its function, with the classes around it.
    pub fn function(&self) -> Option<&str> {
        self.frame.as_deref().map(|frame| &**full_name(frame))
    }

    fn add(&mut self, stack: &StackUsage) {
        self.total = self.total.saturating_add(stack.bytes);
        self.blocks = self.blocks.saturating_add(stack.blocks);
    }
}

fn key(parent: usize, frame: &Frame) -> NodeKey<'_> {
    let (filename, module) = (frame.filename.as_deref(), frame.module.as_deref());
    (parent, frame.kind, full_name(frame), filename, frame.position.line, module)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{native, stacks};
    use super::*;

    #[test]
    fn the_tree_adds_up() {
        let tree = UsageTree::of(&stacks(), false);
        let root = &tree.nodes()[0];
        assert_eq!((root.function(), root.total, root.self_cost, root.blocks), (None, 1000, 50, 5));
        let main = &tree.nodes()[root.children[0]];
        assert_eq!((main.function(), main.total, main.self_cost, root.children.len()), (Some("main"), 950, 50, 1));
        let line = |node: &usize| {
            let node = &tree.nodes()[*node];
            (node.frame.as_ref().and_then(|frame| frame.position.line), node.total)
        };
        assert_eq!(main.children.iter().map(line).collect::<Vec<_>>(), [(Some(20), 600), (Some(21), 300)]);
        for node in tree.nodes() {
            let below: i64 = node.children.iter().map(|child| tree.nodes()[*child].total).sum();
            assert_eq!(node.total, node.self_cost + below);
        }
    }

    #[test]
    fn all_frames_are_shown_on_request() {
        let frames = vec![native("list_resize", "libpython3.12.so.1.0"), Arc::clone(&stacks()[2].frames[0])];
        let stacks = [StackUsage { frames, bytes: 8, blocks: 1 }];
        assert_eq!([false, true].map(|all| UsageTree::of(&stacks, all).nodes().len()), [2, 3]);
    }
}
