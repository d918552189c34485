//! Costs by function, in the terms of Python's `cProfile`.
//!
//! `cProfile` counts while the program runs: for each function, and for each pair of caller and callee, it keeps the
//! number of open calls, and adds to the cumulative time when the last one ends. The open calls are those above a node
//! of the tree. So the same counters, kept during a walk through the tree, have the same values.
//!
//! These figures add up, for each function `f`, where *outermost* are its calls without a caller:
//! - `calls`, self cost and `total_of_all` of `f` are those of its callers' edges and of its outermost calls together;
//! - `total_of_all` of `f` is its self cost plus the `total_of_all` of the edges to its callees.
//!
//! `total` does not: the cost of a recursive call is inside that of the outermost call.

use std::collections::HashMap;

use crate::aggregate::call_tree::{Cost, NodeId};
use crate::aggregate::function::FunctionId;
use crate::aggregate::profile::Profile;

/// The cost of a function, or of its calls by one caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStatistics {
    /// The number of calls (`ncalls`).
    pub calls: u64,
    /// The number of calls while no such call was open.
    pub primitive_calls: u64,
    /// The cost without callees (`tottime`).
    pub self_cost: i64,
    /// The cost with callees (`cumtime`): a call inside another such call is not counted again.
    pub total: i64,
    /// The same with every call counted: time inside two open calls counts twice.
    pub total_of_all: i64,
}

/// The calls of a function by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The caller.
    pub caller: FunctionId,
    /// The callee.
    pub callee: FunctionId,
    /// The cost of the callee in calls by this caller.
    pub statistics: CallStatistics,
}

/// The costs of all functions, and their callers.
#[derive(Clone, Debug)]
pub struct Statistics {
    functions: Vec<CallStatistics>,
    outermost: Vec<CallStatistics>,
    /// By callee.
    incoming: Vec<Edge>,
    /// By caller.
    outgoing: Vec<Edge>,
}

impl Statistics {
    /// Computes the statistics of a profile.
    pub fn of(profile: &Profile) -> Self {
        let mut counting = StatisticsBuilder {
            functions: vec![(CallStatistics::default(), 0); profile.functions().functions().len()],
            outermost: vec![(CallStatistics::default(), 0); profile.functions().functions().len()],
            edges: Vec::new(),
            by_pair: HashMap::new(),
        };
        counting.go_through(profile);
        let [functions, outermost] = [counting.functions, counting.outermost]
            .map(|counted| counted.into_iter().map(|(statistics, _)| statistics).collect());
        let mut incoming: Vec<Edge> = counting.edges.into_iter().map(|(edge, _)| edge).collect();
        incoming.sort_unstable_by_key(|edge| (edge.callee, edge.caller));
        let mut outgoing = incoming.clone();
        outgoing.sort_unstable_by_key(|edge| (edge.caller, edge.callee));
        Self { functions, outermost, incoming, outgoing }
    }

    /// Returns the cost of a function.
    ///
    /// # Panics
    /// If another profile gave the id.
    pub fn function(&self, id: FunctionId) -> CallStatistics {
        self.functions[id.index()]
    }

    /// Returns the cost of a function's calls without a caller.
    ///
    /// # Panics
    /// If another profile gave the id.
    pub fn outermost(&self, id: FunctionId) -> CallStatistics {
        self.outermost[id.index()]
    }

    /// Returns all functions with their costs.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, CallStatistics)> {
        (0..).map(FunctionId).zip(self.functions.iter().copied())
    }

    /// Returns the callers of a function. Calls without a caller have none.
    pub fn callers(&self, callee: FunctionId) -> &[Edge] {
        equal_range(&self.incoming, |edge| edge.callee, callee)
    }

    /// Returns the callees of a function.
    pub fn callees(&self, caller: FunctionId) -> &[Edge] {
        equal_range(&self.outgoing, |edge| edge.caller, caller)
    }

    /// Returns all pairs of caller and callee.
    pub fn edges(&self) -> &[Edge] {
        &self.incoming
    }
}

fn equal_range(edges: &[Edge], end: impl Fn(&Edge) -> FunctionId, id: FunctionId) -> &[Edge] {
    let start = edges.partition_point(|edge| end(edge) < id);
    let length = edges[start..].partition_point(|edge| end(edge) == id);
    &edges[start..start + length]
}

/// Statistics, each with the number of its open calls.
struct StatisticsBuilder {
    functions: Vec<(CallStatistics, u32)>,
    /// Never open: an outermost call is inside no other.
    outermost: Vec<(CallStatistics, u32)>,
    edges: Vec<(Edge, u32)>,
    by_pair: HashMap<(FunctionId, FunctionId), usize>,
}

/// A node on the current path.
#[derive(Clone, Copy)]
struct PathNode {
    node: NodeId,
    /// The number of children that were entered.
    next: usize,
    function: Option<FunctionId>,
    edge: Option<usize>,
}

impl StatisticsBuilder {
    fn go_through(&mut self, profile: &Profile) {
        let (tree, functions) = (profile.tree(), profile.functions());
        let children = tree.children();
        let mut path = vec![PathNode { node: NodeId::ROOT, next: 0, function: None, edge: None }];
        while let Some(top) = path.last_mut() {
            let Some(child) = children.get(top.node).get(top.next) else {
                self.leave(*top);
                path.pop();
                continue;
            };
            top.next += 1;
            let caller = top.function;
            let node = tree.node(*child);
            let function = functions.frame(node.frame).function;
            let edge = caller.map(|caller| self.edge(caller, function));
            count(&mut self.functions[function.index()], |statistics| statistics, node.cost);
            if let Some(edge) = edge {
                count(&mut self.edges[edge], |edge| &mut edge.statistics, node.cost);
            } else {
                let outermost = &mut self.outermost[function.index()];
                count(outermost, |statistics| statistics, node.cost);
                outermost.1 = 0;
            }
            path.push(PathNode { node: *child, next: 0, function: Some(function), edge });
        }
    }

    fn leave(&mut self, left: PathNode) {
        if let Some(function) = left.function {
            self.functions[function.index()].1 -= 1;
        }
        if let Some(edge) = left.edge {
            self.edges[edge].1 -= 1;
        }
    }

    fn edge(&mut self, from: FunctionId, to: FunctionId) -> usize {
        *self.by_pair.entry((from, to)).or_insert_with(|| {
            self.edges.push((Edge { caller: from, callee: to, statistics: CallStatistics::default() }, 0));
            self.edges.len() - 1
        })
    }
}

/// Adds the cost of a node, and opens it.
fn count<T>(counted: &mut (T, u32), statistics: impl Fn(&mut T) -> &mut CallStatistics, cost: Cost) {
    let (of, open) = counted;
    let sum = statistics(of);
    sum.calls = sum.calls.saturating_add(cost.calls);
    sum.self_cost = sum.self_cost.saturating_add(cost.self_cost);
    sum.total_of_all = sum.total_of_all.saturating_add(cost.total);
    if *open == 0 {
        sum.primitive_calls = sum.primitive_calls.saturating_add(cost.calls);
        sum.total = sum.total.saturating_add(cost.total);
    }
    *open += 1;
}
