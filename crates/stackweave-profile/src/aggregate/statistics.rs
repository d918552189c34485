//! Costs by function, in the terms of Python's `cProfile`.
//!
//! `cProfile` counts while the program runs: it keeps for each function, and for each pair of caller and function, how
//! many calls of it are open, and adds to the cumulative time when the last one ends. Which calls are open is what stands
//! above a node of the tree. So the same counters, kept while going through the tree, give the same numbers.
//!
//! Of the numbers these add up, for each function `f`, where *outermost* are its calls that nobody made:
//! - `calls`, `own` and `total_of_all` of `f` are those of its callers' edges and of its outermost calls together;
//! - `total_of_all` of `f` is its `own` and the `total_of_all` of the edges to all that it calls.
//!
//! `total` does not: what a recursive call takes is inside of what the outermost one takes.

use std::collections::HashMap;

use crate::aggregate::call_tree::{Cost, NodeId};
use crate::aggregate::function::FunctionId;
use crate::aggregate::profile::Profile;

/// What a function cost, or what it cost when a certain one called it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStatistics {
    /// How often it was called (`ncalls`).
    pub calls: u64,
    /// How often it was called while no such call was open.
    pub primitive_calls: u64,
    /// What it cost itself (`tottime`).
    pub own: i64,
    /// What it cost with all that it called (`cumtime`): a call inside another such call is not counted again.
    pub total: i64,
    /// The same, with every call counted: time inside of two open calls is in it twice.
    pub total_of_all: i64,
}

/// A caller of a function, or a function that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who called.
    pub caller: FunctionId,
    /// Who was called.
    pub callee: FunctionId,
    /// What the callee cost when the caller called it.
    pub statistics: CallStatistics,
}

/// What each function of a profile cost, and who called it.
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
    /// The statistics of a profile.
    pub fn of(profile: &Profile) -> Self {
        let mut counting = Counting {
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

    /// What this function cost.
    ///
    /// # Panics
    /// If another profile gave the id.
    pub fn function(&self, id: FunctionId) -> CallStatistics {
        self.functions[id.index()]
    }

    /// What this function cost when nobody called it.
    ///
    /// # Panics
    /// If another profile gave the id.
    pub fn outermost(&self, id: FunctionId) -> CallStatistics {
        self.outermost[id.index()]
    }

    /// Every function and what it cost.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, CallStatistics)> {
        (0..).map(FunctionId).zip(self.functions.iter().copied())
    }

    /// Who called this function. What nobody called has no caller.
    pub fn callers(&self, callee: FunctionId) -> &[Edge] {
        equal_range(&self.incoming, |edge| edge.callee, callee)
    }

    /// Whom this function called.
    pub fn callees(&self, caller: FunctionId) -> &[Edge] {
        equal_range(&self.outgoing, |edge| edge.caller, caller)
    }

    /// Every pair of caller and function.
    pub fn edges(&self) -> &[Edge] {
        &self.incoming
    }
}

fn equal_range(edges: &[Edge], end: impl Fn(&Edge) -> FunctionId, id: FunctionId) -> &[Edge] {
    let start = edges.partition_point(|edge| end(edge) < id);
    let length = edges[start..].partition_point(|edge| end(edge) == id);
    &edges[start..start + length]
}

/// Statistics, each with the number of its calls that are open.
struct Counting {
    functions: Vec<(CallStatistics, u32)>,
    /// Never open: an outermost call is in no other.
    outermost: Vec<(CallStatistics, u32)>,
    edges: Vec<(Edge, u32)>,
    by_pair: HashMap<(FunctionId, FunctionId), usize>,
}

/// A node that was entered.
#[derive(Clone, Copy)]
struct Entered {
    node: NodeId,
    /// How many of its children were entered.
    next: usize,
    function: Option<FunctionId>,
    edge: Option<usize>,
}

impl Counting {
    fn go_through(&mut self, profile: &Profile) {
        let (tree, functions) = (profile.tree(), profile.functions());
        let children = tree.children();
        let mut path = vec![Entered { node: NodeId::ROOT, next: 0, function: None, edge: None }];
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
            path.push(Entered { node: *child, next: 0, function: Some(function), edge });
        }
    }

    fn leave(&mut self, left: Entered) {
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

/// Adds what a node cost, and opens it.
fn count<T>(counted: &mut (T, u32), statistics: impl Fn(&mut T) -> &mut CallStatistics, cost: Cost) {
    let (of, open) = counted;
    let sum = statistics(of);
    sum.calls = sum.calls.saturating_add(cost.calls);
    sum.own = sum.own.saturating_add(cost.own);
    sum.total_of_all = sum.total_of_all.saturating_add(cost.total);
    if *open == 0 {
        sum.primitive_calls = sum.primitive_calls.saturating_add(cost.calls);
        sum.total = sum.total.saturating_add(cost.total);
    }
    *open += 1;
}
