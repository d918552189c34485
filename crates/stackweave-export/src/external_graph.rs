//! Call graphs of data that is not a recording, such as a `.prof` file.

use stackweave_profile::{CallStatistics, FrameKind, Measure};

use crate::call_graph::{CallGraph, GraphNode};
use crate::formats::call_graph_svg;
use crate::svg::{FunctionLabel, one_line};

/// A function, with its cost in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalFunction {
    /// The name.
    pub name: String,
    /// The file; for native functions it is empty, or `~` as in tables of `cProfile`.
    pub filename: String,
    /// The first line.
    pub line: Option<u32>,
    /// Its calls and their cost.
    pub statistics: CallStatistics,
}

/// The calls of one function by another. Both are indexes of [`ExternalGraph::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalCalls {
    /// The caller.
    pub caller: usize,
    /// The callee.
    pub callee: usize,
    /// The cost of the callee in calls by this caller.
    pub statistics: CallStatistics,
}

/// Functions and their calls, from any source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalGraph {
    /// The title.
    pub title: String,
    /// The functions, without duplicates.
    pub functions: Vec<ExternalFunction>,
    /// The calls, without duplicates. Calls of missing functions are left out.
    pub calls: Vec<ExternalCalls>,
}

impl ExternalGraph {
    /// Draws the functions with the highest cost, like the export `callgraph` of a recording. The total is the sum of
    /// the self costs.
    #[must_use]
    pub fn svg(&self) -> String {
        let total =
            self.functions.iter().fold(0_i64, |sum, function| sum.saturating_add(function.statistics.self_cost));
        let costs = self.functions.iter().map(|function| function.statistics).enumerate().collect();
        let node = |id: usize, statistics| self.functions[id].node(statistics);
        let calls = self.calls.iter().map(|calls| (calls.caller, calls.callee, calls.statistics));
        call_graph_svg(
            &CallGraph::from_functions(Measure::WallTime, total, (costs, node), calls),
            one_line(&self.title),
        )
    }
}

impl ExternalFunction {
    fn node(&self, statistics: CallStatistics) -> GraphNode {
        let is_native = matches!(self.filename.as_str(), "" | "~");
        let (kind, file) =
            if is_native { (FrameKind::Native, "") } else { (FrameKind::Python, self.filename.as_str()) };
        GraphNode { kind, label: FunctionLabel::at(&self.name, file, self.line), statistics }
    }
}
