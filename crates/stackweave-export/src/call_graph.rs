//! The functions of a profile and their calls, without those of negligible cost.

use std::collections::HashMap;

use stackweave_profile::{CallStatistics, FrameKind, FunctionId, Measure, Profile, Statistics};

use crate::svg::{FunctionLabel, plural, share};

/// The maximum number of functions, and how many are shown whatever their cost.
const MAX_NODES: usize = 200;
const ALWAYS_SHOWN: usize = 50;
const MAX_EDGES_PER_NODE: usize = 3;
const MIN_NODE_SHARE: f64 = 0.005;
const MIN_EDGE_SHARE: f64 = 0.001;

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct GraphNode {
    pub(crate) kind: FrameKind,
    pub(crate) label: FunctionLabel,
    pub(crate) statistics: CallStatistics,
}

/// The calls of one function by another. Both are indexes of [`CallGraph::nodes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphEdge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) statistics: CallStatistics,
}

/// The functions with the highest cost, and their calls.
#[derive(Clone, Debug)]
pub(crate) struct CallGraph {
    pub(crate) measure: Measure,
    pub(crate) total: i64,
    /// Sorted by cost, the highest first.
    pub(crate) nodes: Vec<GraphNode>,
    pub(crate) edges: Vec<GraphEdge>,
    pub(crate) hidden_nodes: usize,
    /// Hidden edges between visible functions.
    pub(crate) hidden_edges: usize,
    /// The caption about what is hidden inside libraries and the interpreter.
    pub(crate) caption: Option<String>,
}

impl CallGraph {
    pub(crate) fn of(profile: &Profile) -> Self {
        let statistics = Statistics::of(profile);
        let node = |id: FunctionId, statistics: CallStatistics| {
            let function = profile.functions().function(id);
            GraphNode { kind: function.kind, label: FunctionLabel::of(function, None), statistics }
        };
        let calls = statistics.edges().iter().map(|edge| (edge.caller, edge.callee, edge.statistics));
        let (measure, total) = (profile.measure(), profile.total());
        let caption = profile.hidden().caption(total, measure);
        Self { caption, ..Self::from_functions(measure, total, (statistics.functions().collect(), node), calls) }
    }

    /// Builds the graph of given functions, with a closure that makes the node of each, and of the calls between them.
    pub(crate) fn from_functions<Id: Copy + Ord + core::hash::Hash>(
        measure: Measure,
        total: i64,
        (mut functions, node): (Vec<(Id, CallStatistics)>, impl Fn(Id, CallStatistics) -> GraphNode),
        calls: impl Iterator<Item = (Id, Id, CallStatistics)>,
    ) -> Self {
        functions.retain(|(_, of)| of.calls != 0 || of.self_cost != 0 || of.total != 0);
        let all = functions.len();
        functions.sort_by_key(|(id, of)| (core::cmp::Reverse(of.total), *id));
        let matters = |cost: i64, least: f64| total == 0 || share(cost, total) >= least;
        let that_matter = functions.partition_point(|(_, of)| matters(of.total, MIN_NODE_SHARE));
        functions.truncate(that_matter.clamp(ALWAYS_SHOWN, MAX_NODES));
        let indexes: HashMap<Id, usize> = functions.iter().enumerate().map(|(index, (id, _))| (*id, index)).collect();
        let nodes: Vec<GraphNode> = functions.iter().map(|(id, statistics)| node(*id, *statistics)).collect();
        let edge = |(caller, callee, statistics): (Id, Id, CallStatistics)| {
            let (from, to) = (*indexes.get(&caller)?, *indexes.get(&callee)?);
            Some(GraphEdge { from, to, statistics })
        };
        let inside: Vec<GraphEdge> = calls.filter_map(edge).collect();
        let count = inside.len();
        let edges = select_edges(inside, nodes.len(), |edge| matters(edge.statistics.total, MIN_EDGE_SHARE));
        let hidden_edges = count - edges.len();
        Self { measure, total, hidden_nodes: all - nodes.len(), nodes, edges, hidden_edges, caption: None }
    }

    /// Returns the share of a cost in the total.
    pub(crate) fn share(&self, cost: i64) -> f64 {
        share(cost, self.total)
    }

    /// Returns what is hidden and why, if anything is.
    pub(crate) fn notes(&self) -> Vec<String> {
        [self.negligible(), self.caption.clone()].into_iter().flatten().collect()
    }

    fn negligible(&self) -> Option<String> {
        let hidden = [(self.hidden_nodes, "function"), (self.hidden_edges, "arrow")];
        let parts: Vec<String> = hidden
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| plural(count as u64, word))
            .collect();
        (!parts.is_empty()).then(|| format!("hidden, because their cost is negligible: {}", parts.join(", ")))
    }
}

/// Returns the edges above the minimum share, and for each function its most frequent caller, sorted by caller.
fn select_edges(mut edges: Vec<GraphEdge>, nodes: usize, matters: impl Fn(&GraphEdge) -> bool) -> Vec<GraphEdge> {
    edges.sort_by_key(|edge| (core::cmp::Reverse(edge.statistics.total), edge.from, edge.to));
    let mut has_caller = vec![false; nodes];
    let mut left = nodes * MAX_EDGES_PER_NODE;
    edges.retain(|edge| {
        let is_first = edge.from != edge.to && !core::mem::replace(&mut has_caller[edge.to], true);
        let is_kept = is_first || (left > 0 && matters(edge));
        left = left.saturating_sub(usize::from(is_kept));
        is_kept
    });
    edges.sort_by_key(|edge| (edge.from, edge.to));
    edges
}
