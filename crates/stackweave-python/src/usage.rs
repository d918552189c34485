//! Memory by stack: functions, trees and tables of it, and sizes in words.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use stackweave_cli::text::{UsageLines, usage_tree_text};
use stackweave_core::printable;
use stackweave_profile::usage::{StackUsage, UsageNode, UsageTree, function_usage};
use stackweave_profile::{Frame, Measure};

use crate::frame::{PyFrame, tuple_of};
use crate::memory::quietly_if_recorded;

/// Adds the type and the functions to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyUsageTree>()?;
    // What can't be the name of anything in Rust.
    let made = module.py().get_type::<PyUsageTree>();
    if made.hasattr("own")? {
        made.setattr("self", made.getattr("own")?)?;
        made.delattr("own")?;
    }
    module.add_function(wrap_pyfunction!(seen_frames, module)?)?;
    module.add_function(wrap_pyfunction!(usage_frames, module)?)?;
    module.add_function(wrap_pyfunction!(usage_lines, module)?)?;
    module.add_function(wrap_pyfunction!(usage_top, module)?)?;
    module.add_function(wrap_pyfunction!(usage_tree, module)?)?;
    module.add_function(wrap_pyfunction!(shorten, module)?)?;
    module.add_function(wrap_pyfunction!(size_text, module)?)
}

/// The frames of a stack, innermost first.
type Stack<'py> = Vec<Bound<'py, PyFrame>>;
/// A stack, its bytes and its blocks.
type Used<'py> = (Stack<'py>, i64, i64);

fn frames(stack: &[Bound<'_, PyFrame>]) -> Vec<Arc<Frame>> {
    stack.iter().map(|frame| Arc::clone(&frame.get().frame)).collect()
}

fn stacks_of(used: &[Used<'_>]) -> Vec<StackUsage> {
    let of = |(stack, bytes, blocks): &Used<'_>| StackUsage { frames: frames(stack), bytes: *bytes, blocks: *blocks };
    used.iter().map(of).collect()
}

/// The frames that say who wanted memory: not the interpreter's, nor ours.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn seen_frames<'py>(py: Python<'py>, stack: Stack<'py>) -> PyResult<Bound<'py, PyTuple>> {
    let seen: Vec<Arc<Frame>> = stackweave_profile::usage::seen_frames(&frames(&stack)).map(Arc::clone).collect();
    tuple_of(py, &seen)
}

/// These in words, without the insides of native modules.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn usage_frames(stack: Stack<'_>) -> Vec<String> {
    stackweave_cli::text::usage_frames(&frames(&stack), std::env::current_dir().ok().as_deref())
}

/// The lines of a table. Each row is a stack, its bytes, its blocks, and what there is to note about it.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn usage_lines(
    py: Python<'_>,
    rows: Vec<(Stack<'_>, i64, i64, String)>,
    total: i64,
    limit: usize,
    depth: usize,
) -> Vec<String> {
    quietly_if_recorded(py, || {
        let of = |(stack, bytes, blocks, notes): &(Stack<'_>, i64, i64, String)| {
            (StackUsage { frames: frames(stack), bytes: *bytes, blocks: *blocks }, notes.clone())
        };
        let rows: Vec<_> = rows.iter().map(of).collect();
        let folder = std::env::current_dir().ok();
        UsageLines { total, limit, depth, folder: folder.as_deref() }.of(&rows)
    })
}

/// A function, its file or module, and its line; then own bytes, total bytes and own blocks.
type Row = (String, Option<String>, Option<u32>, i64, i64, i64);

/// What each function has, those that have most themselves first.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn usage_top(py: Python<'_>, stacks: Vec<Used<'_>>) -> Vec<Row> {
    quietly_if_recorded(py, || {
        let functions = function_usage(&stacks_of(&stacks)).into_iter();
        let row = |of: stackweave_profile::usage::FunctionUsage| {
            let filename = of.filename.map(|filename| filename.to_string());
            (of.name.to_string(), filename, of.line, of.own, of.total, of.blocks)
        };
        functions.map(row).collect()
    })
}

/// Who called whom, down to those who took memory.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn usage_tree(py: Python<'_>, measure: String, stacks: Vec<Used<'_>>, all: bool) -> PyUsageTree {
    let tree = quietly_if_recorded(py, || UsageTree::of(&stacks_of(&stacks), all));
    PyUsageTree { whole: Arc::new((tree, measure)), at: 0 }
}

/// A long name of C++ or Rust without what its templates and parameters are, then without its outer scopes.
#[pyfunction]
#[pyo3(signature = (name, width=60))]
fn shorten(name: &str, width: usize) -> String {
    stackweave_cli::text::shorten(name, width).into_owned()
}

/// 12 B, 1.50 KiB, 640 MiB: as the command shows them.
#[pyfunction]
fn size_text(size: f64) -> String {
    Measure::LiveBytes.text(size)
}

/// A function, and what it and those that it called have taken. The root is the program, and has no function.
#[pyclass(frozen, module = "stackweave", name = "UsageTree")]
#[derive(Debug)]
pub(crate) struct PyUsageTree {
    /// The tree, and which moment it is about.
    whole: Arc<(UsageTree, String)>,
    at: usize,
}

impl PyUsageTree {
    fn node(&self) -> &UsageNode {
        &self.whole.0.nodes()[self.at]
    }

    fn frame(&self) -> Option<&Frame> {
        self.node().frame.as_deref()
    }
}

#[pymethods]
impl PyUsageTree {
    /// Which moment it is about.
    #[getter]
    fn measure(&self) -> &str {
        &self.whole.1
    }

    /// The bytes that it took with all that it called.
    #[getter]
    fn total(&self) -> i64 {
        self.node().total
    }

    /// The bytes that it took itself.
    #[getter]
    fn own(&self) -> i64 {
        self.node().own
    }

    /// The blocks that it took with all that it called.
    #[getter]
    fn blocks(&self) -> i64 {
        self.node().blocks
    }

    #[getter]
    fn function(&self) -> Option<&str> {
        self.node().function()
    }

    #[getter]
    fn file(&self) -> Option<&str> {
        self.frame()?.filename.as_deref()
    }

    /// The line that it was at.
    #[getter]
    fn line(&self) -> Option<u32> {
        self.frame()?.position.line
    }

    #[getter]
    fn kind(&self) -> Option<&'static str> {
        self.frame().map(|frame| frame.kind.as_str())
    }

    #[getter]
    fn module(&self) -> Option<&str> {
        self.frame()?.module.as_deref()
    }

    /// What it called, the most bytes first.
    #[getter]
    fn children<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let child = |at: &usize| Bound::new(py, Self { whole: Arc::clone(&self.whole), at: *at });
        PyTuple::new(py, self.node().children.iter().map(child).collect::<PyResult<Vec<_>>>()?)
    }

    fn __str__(&self, py: Python<'_>) -> String {
        let (tree, measure) = &*self.whole;
        let text = quietly_if_recorded(py, || usage_tree_text(tree, self.at, measure));
        text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
    }

    #[expect(clippy::cast_precision_loss, reason = "written with few digits")]
    fn __repr__(&self) -> String {
        let name = self.node().function().unwrap_or(&self.whole.1);
        let size = size_text(self.node().total as f64);
        printable(&format!("<stackweave.UsageTree {name}: {size}>"))
    }
}
