//! The tree of a flame graph: functions below their callers, those with the highest cost first, without boxes too small
//! to see.

use std::cmp::Reverse;
use std::sync::Arc;

use stackweave_core::Pattern;
use stackweave_profile::{Children, FunctionId, FunctionTable, Measure, NodeId, Profile, WordMap};

/// The root and the direction of a flame graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlameShape {
    /// Only calls below functions that match; of nested ones, the outermost counts.
    pub root: Option<Pattern>,
    /// Whether it starts with self costs and continues with the callers.
    pub bottom_up: bool,
    /// The maximum number of levels; deeper ones are counted.
    pub max_depth: Option<usize>,
    /// Functions with a lower cost have no box, but are counted by [`FlameBox::small`].
    pub least: i64,
}

/// A function on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameBox {
    /// The function, in [`FlameTree::functions`]; `None` for the root.
    pub function: Option<FunctionId>,
    /// The total cost on this path.
    pub value: i64,
    /// The level; that of the root is 0.
    pub depth: usize,
    /// The indexes of the callees in [`FlameTree::boxes`], those with the highest cost first.
    pub children: Vec<usize>,
    /// The number of callees that are too small for a box, and their cost together.
    pub small: (usize, i64),
}

/// The boxes of a flame graph. The first is the root.
#[derive(Clone, Debug)]
pub struct FlameTree {
    /// The measure.
    pub measure: Measure,
    /// The functions of the boxes.
    pub functions: FunctionTable,
    /// All boxes, parents before their children.
    pub boxes: Vec<FlameBox>,
    /// The total cost of the profile, of which the root may be a part.
    pub whole: i64,
    /// The depth of the deepest function with enough cost to be shown, even if it is beyond the last level.
    pub deepest: usize,
}

/// The maximum number of levels of callers: each level goes over all nodes.
const MAX_CALLERS: usize = 1000;

/// The nodes of a profile that form one box, each with its part of the cost.
type Nodes = Vec<(NodeId, i64)>;

impl FlameTree {
    /// Builds the boxes of a profile.
    pub fn of(profile: &Profile, shape: &FlameShape) -> Self {
        let builder = FlameTreeBuilder::new(profile, shape);
        let first = builder.first();
        let value = if shape.root.is_none() { profile.total() } else { sum(&first) };
        let mut tree = Self {
            measure: profile.measure(),
            functions: profile.functions().clone(),
            boxes: vec![FlameBox::new(None, value, 0)],
            whole: profile.total(),
            deepest: 0,
        };
        // Functions beyond the last level have no parent here; only their depth is counted.
        let mut waiting = vec![(Some(0), 1, builder.groups(first))];
        while let Some((parent, depth, groups)) = waiting.pop() {
            for (function, nodes) in groups {
                let value = sum(&nodes);
                let is_small = value < shape.least.max(1);
                if !is_small {
                    tree.deepest = tree.deepest.max(depth);
                }
                let index = parent.and_then(|parent| tree.put(parent, function, (value, is_small), shape.max_depth));
                if !is_small {
                    waiting.push((index, depth + 1, builder.below(nodes, depth)));
                }
            }
        }
        tree
    }

    /// Adds a box to its parent, unless it is too small or too deep.
    fn put(
        &mut self,
        parent: usize,
        function: FunctionId,
        cost: (i64, bool),
        max_depth: Option<usize>,
    ) -> Option<usize> {
        let (value, is_small) = cost;
        let depth = self.boxes[parent].depth + 1;
        if max_depth.is_some_and(|most| depth > most) {
            return None;
        }
        let index = self.boxes.len();
        let above = &mut self.boxes[parent];
        if is_small {
            above.small = (above.small.0 + 1, above.small.1.saturating_add(value));
            return None;
        }
        above.children.push(index);
        self.boxes.push(FlameBox::new(Some(function), value, depth));
        Some(index)
    }

    /// Returns the number of levels, without the root.
    pub fn depth(&self) -> usize {
        self.boxes.iter().map(|one| one.depth).max().unwrap_or(0)
    }
}

impl FlameBox {
    const fn new(function: Option<FunctionId>, value: i64, depth: usize) -> Self {
        Self { function, value, depth, children: Vec::new(), small: (0, 0) }
    }
}

struct FlameTreeBuilder<'a> {
    profile: &'a Profile,
    children: Children,
    shape: &'a FlameShape,
    /// For each node whether it is below the requested root; `None` without a root.
    inside: Option<Vec<RootRelation>>,
}

impl<'a> FlameTreeBuilder<'a> {
    fn new(profile: &'a Profile, shape: &'a FlameShape) -> Self {
        let inside = shape.root.as_ref().map(|pattern| inside(profile, pattern));
        Self { profile, children: profile.tree().children(), shape, inside }
    }

    fn is_inside(&self, id: NodeId) -> bool {
        id != NodeId::ROOT && self.inside.as_ref().is_none_or(|inside| inside[id.index()] != RootRelation::Outside)
    }

    /// Returns the nodes of the first level.
    fn first(&self) -> Nodes {
        let tree = self.profile.tree();
        if self.shape.bottom_up {
            let costs = tree.iter().filter(|(id, node)| node.cost.self_cost > 0 && self.is_inside(*id));
            return costs.map(|(id, node)| (id, node.cost.self_cost)).collect();
        }
        let outermost = |id: NodeId| match &self.inside {
            Some(inside) => inside[id.index()] == RootRelation::Root,
            None => tree.node(id).parent == NodeId::ROOT,
        };
        let found = tree.iter().filter(|(id, _)| outermost(*id));
        found.map(|(id, node)| (id, node.cost.total)).collect()
    }

    /// Returns the nodes of the next level.
    fn below(&self, nodes: Nodes, depth: usize) -> Vec<(FunctionId, Nodes)> {
        let tree = self.profile.tree();
        if !self.shape.bottom_up {
            let below = nodes.iter().flat_map(|(id, _)| self.children.get(*id));
            return self.groups(below.map(|id| (*id, tree.node(*id).cost.total)).collect());
        }
        if depth >= MAX_CALLERS {
            return Vec::new();
        }
        let callers = nodes.into_iter().map(|(id, value)| (tree.node(id).parent, value));
        self.groups(callers.filter(|(id, _)| self.is_inside(*id)).collect())
    }

    /// Groups nodes by function, those with the highest cost first.
    fn groups(&self, nodes: Nodes) -> Vec<(FunctionId, Nodes)> {
        let functions = self.profile.functions();
        let mut by_function: WordMap<FunctionId, WordMap<NodeId, i64>> = WordMap::default();
        for (id, value) in nodes {
            let function = functions.frame(self.profile.tree().node(id).frame).function;
            let sum = by_function.entry(function).or_default().entry(id).or_default();
            *sum = sum.saturating_add(value);
        }
        let mut groups: Vec<(FunctionId, Nodes)> = by_function
            .into_iter()
            .map(|(function, nodes)| {
                let mut nodes: Nodes = nodes.into_iter().collect();
                nodes.sort_unstable_by_key(|(id, _)| *id);
                (function, nodes)
            })
            .collect();
        let name = |id: FunctionId| Arc::clone(functions.function(id).full_name());
        groups.sort_by_cached_key(|(id, nodes)| (Reverse(sum(nodes)), name(*id), *id));
        groups
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RootRelation {
    Outside,
    Root,
    Below,
}

fn inside(profile: &Profile, pattern: &Pattern) -> Vec<RootRelation> {
    let functions = profile.functions();
    let matches: Vec<bool> = functions.functions().iter().map(|one| pattern.matches(one.names())).collect();
    let mut inside = vec![RootRelation::Outside; profile.tree().nodes().len()];
    for (id, node) in profile.tree().iter() {
        inside[id.index()] = match inside[node.parent.index()] {
            RootRelation::Outside if matches[functions.frame(node.frame).function.index()] => RootRelation::Root,
            RootRelation::Outside => RootRelation::Outside,
            RootRelation::Root | RootRelation::Below => RootRelation::Below,
        };
    }
    inside
}

fn sum(nodes: &[(NodeId, i64)]) -> i64 {
    nodes.iter().fold(0, |sum, (_, value)| sum.saturating_add(*value))
}
