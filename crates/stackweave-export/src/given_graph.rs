//! Call graphs of what is known without a recording, such as the table of a `.prof` file.

use stackweave_profile::{CallStatistics, FrameKind, Measure};

use crate::call_graph::{CallGraph, GraphNode};
use crate::formats::call_graph_svg;
use crate::svg::{Named, one_line};

/// A function, with what it cost in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalledFunction {
    /// What it is called.
    pub name: String,
    /// Where it is; empty, or `~` as in tables of `cProfile`, if it is in no file: then it is native.
    pub filename: String,
    /// The line that it begins on.
    pub line: Option<u32>,
    /// All of its calls.
    pub statistics: CallStatistics,
}

/// The calls of one function by another. Both are places in [`GivenGraph::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Who called.
    pub caller: usize,
    /// Who was called.
    pub callee: usize,
    /// What the callee cost when the caller called it.
    pub statistics: CallStatistics,
}

/// Functions and their calls, from wherever they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenGraph {
    /// What it is of, in a few words.
    pub title: String,
    /// Each once.
    pub functions: Vec<CalledFunction>,
    /// Each pair once. Those of functions that are not there are left out.
    pub calls: Vec<Calls>,
}

impl GivenGraph {
    /// The picture of it, as the export `callgraph` draws recordings: the functions that cost most. All is the sum of what
    /// functions cost themselves.
    #[must_use]
    pub fn svg(&self) -> String {
        let total = self.functions.iter().fold(0_i64, |sum, function| sum.saturating_add(function.statistics.own));
        let costs = self.functions.iter().map(|function| function.statistics).enumerate().collect();
        let node = |id: usize, statistics| self.functions[id].node(statistics);
        let calls = self.calls.iter().map(|calls| (calls.caller, calls.callee, calls.statistics));
        call_graph_svg(&CallGraph::chosen(Measure::WallTime, total, (costs, node), calls), one_line(&self.title))
    }
}

impl CalledFunction {
    fn node(&self, statistics: CallStatistics) -> GraphNode {
        let is_native = matches!(self.filename.as_str(), "" | "~");
        let (kind, file) =
            if is_native { (FrameKind::Native, "") } else { (FrameKind::Python, self.filename.as_str()) };
        GraphNode { kind, named: Named::at(&self.name, file, self.line), statistics }
    }
}
