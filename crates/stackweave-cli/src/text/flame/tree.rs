//! What a flame graph shows: functions under functions, the costliest first, as far as they can be seen.

use std::cmp::Reverse;
use std::sync::Arc;

use stackweave_core::Pattern;
use stackweave_profile::{Children, FunctionId, FunctionTable, Measure, NodeId, Profile, WordMap};

/// From where, and in which direction, a flame graph is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlameShape {
    /// Only what functions like these did, from there on: where one calls another, from the outer one.
    pub root: Option<Pattern>,
    /// Begins with what cost something itself, and goes on to who called it.
    pub bottom_up: bool,
    /// How many levels there are to be; those that are deeper are counted.
    pub max_depth: Option<usize>,
    /// What costs less than this has no box of its own, but is counted by [`FlameBox::small`].
    pub least: i64,
}

/// A function on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameBox {
    /// Which, in [`FlameTree::functions`]; `None` for what stands above all others.
    pub function: Option<FunctionId>,
    /// What it cost on this path with all that is below it.
    pub value: i64,
    /// How far from the top: that of the whole is 0.
    pub depth: usize,
    /// What is below it, the costliest first: places in [`FlameTree::boxes`].
    pub children: Vec<usize>,
    /// How many of those below it are too small, and what they cost together.
    pub small: (usize, i64),
}

/// The boxes of a flame graph. The first is the whole.
#[derive(Clone, Debug)]
pub struct FlameTree {
    /// What is counted.
    pub measure: Measure,
    /// The functions of the boxes.
    pub functions: FunctionTable,
    /// Every box, before those below it.
    pub boxes: Vec<FlameBox>,
    /// What the profile cost, of which the first box may be a part.
    pub whole: i64,
    /// The greatest depth of what is great enough to be shown, whether there are boxes for it or not.
    pub deepest: usize,
}

/// Levels from here on are not followed upwards: each of them looks at all that cost something.
const MOST_CALLERS: usize = 1000;

/// Nodes of a profile that are one box, each with what it adds to it.
type Nodes = Vec<(NodeId, i64)>;

impl FlameTree {
    /// The boxes of a profile.
    pub fn of(profile: &Profile, shape: &FlameShape) -> Self {
        let growth = Growth::new(profile, shape);
        let first = growth.first();
        let value = if shape.root.is_none() { profile.total() } else { sum(&first) };
        let mut tree = Self {
            measure: profile.measure(),
            functions: profile.functions().clone(),
            boxes: vec![FlameBox::new(None, value, 0)],
            whole: profile.total(),
            deepest: 0,
        };
        // Of what is deeper than asked for only the depth is told: it has no parent here.
        let mut waiting = vec![(Some(0), 1, growth.groups(first))];
        while let Some((parent, depth, groups)) = waiting.pop() {
            for (function, nodes) in groups {
                let value = sum(&nodes);
                let is_small = value < shape.least.max(1);
                if !is_small {
                    tree.deepest = tree.deepest.max(depth);
                }
                let place = parent.and_then(|parent| tree.put(parent, function, (value, is_small), shape.max_depth));
                if !is_small {
                    waiting.push((place, depth + 1, growth.below(nodes, depth)));
                }
            }
        }
        tree
    }

    /// Puts a box under another one, unless it is small or too deep.
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
        let place = self.boxes.len();
        let above = &mut self.boxes[parent];
        if is_small {
            above.small = (above.small.0 + 1, above.small.1.saturating_add(value));
            return None;
        }
        above.children.push(place);
        self.boxes.push(FlameBox::new(Some(function), value, depth));
        Some(place)
    }

    /// How many levels there are boxes for, without the whole.
    pub fn depth(&self) -> usize {
        self.boxes.iter().map(|one| one.depth).max().unwrap_or(0)
    }
}

impl FlameBox {
    const fn new(function: Option<FunctionId>, value: i64, depth: usize) -> Self {
        Self { function, value, depth, children: Vec::new(), small: (0, 0) }
    }
}

struct Growth<'a> {
    profile: &'a Profile,
    children: Children,
    shape: &'a FlameShape,
    /// For each node whether it is below the root that is asked for; `None` if none is.
    inside: Option<Vec<Inside>>,
}

impl<'a> Growth<'a> {
    fn new(profile: &'a Profile, shape: &'a FlameShape) -> Self {
        let inside = shape.root.as_ref().map(|pattern| inside(profile, pattern));
        Self { profile, children: profile.tree().children(), shape, inside }
    }

    fn is_inside(&self, id: NodeId) -> bool {
        id != NodeId::ROOT && self.inside.as_ref().is_none_or(|inside| inside[id.index()] != Inside::No)
    }

    /// What is on the first level: if the graph goes down, the nodes that it begins with.
    fn first(&self) -> Nodes {
        let tree = self.profile.tree();
        if self.shape.bottom_up {
            let costs = tree.iter().filter(|(id, node)| node.cost.own > 0 && self.is_inside(*id));
            return costs.map(|(id, node)| (id, node.cost.own)).collect();
        }
        let outermost = |id: NodeId| match &self.inside {
            Some(inside) => inside[id.index()] == Inside::First,
            None => tree.node(id).parent == NodeId::ROOT,
        };
        let found = tree.iter().filter(|(id, _)| outermost(*id));
        found.map(|(id, node)| (id, node.cost.total)).collect()
    }

    /// The nodes that come next to these.
    fn below(&self, nodes: Nodes, depth: usize) -> Vec<(FunctionId, Nodes)> {
        let tree = self.profile.tree();
        if !self.shape.bottom_up {
            let below = nodes.iter().flat_map(|(id, _)| self.children.get(*id));
            return self.groups(below.map(|id| (*id, tree.node(*id).cost.total)).collect());
        }
        if depth >= MOST_CALLERS {
            return Vec::new();
        }
        let callers = nodes.into_iter().map(|(id, value)| (tree.node(id).parent, value));
        self.groups(callers.filter(|(id, _)| self.is_inside(*id)).collect())
    }

    /// Nodes by function, the costliest first.
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
enum Inside {
    No,
    First,
    Below,
}

fn inside(profile: &Profile, pattern: &Pattern) -> Vec<Inside> {
    let functions = profile.functions();
    let matches: Vec<bool> = functions.functions().iter().map(|one| pattern.matches(one.names())).collect();
    let mut inside = vec![Inside::No; profile.tree().nodes().len()];
    for (id, node) in profile.tree().iter() {
        inside[id.index()] = match inside[node.parent.index()] {
            Inside::No if matches[functions.frame(node.frame).function.index()] => Inside::First,
            Inside::No => Inside::No,
            Inside::First | Inside::Below => Inside::Below,
        };
    }
    inside
}

fn sum(nodes: &[(NodeId, i64)]) -> i64 {
    nodes.iter().fold(0, |sum, (_, value)| sum.saturating_add(*value))
}
