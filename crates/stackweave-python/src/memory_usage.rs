//! Memory by stack, as functions, trees and tables, and sizes as text.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use stackweave_cli::text::{UsageLines, usage_tree_text};
use stackweave_core::printable;
use stackweave_profile::usage::{StackUsage, UsageNode, UsageTree, function_usage};
use stackweave_profile::{Frame, Measure};

use crate::frame::{PyFrame, tuple_of};
use crate::memory::suppress_recording_if_active;

/// Adds the type and the functions to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyUsageTree>()?;
    // `self` is a keyword of Rust, so the getter has another name there.
    let type_object = module.py().get_type::<PyUsageTree>();
    if type_object.hasattr("own")? {
        type_object.setattr("self", type_object.getattr("own")?)?;
        type_object.delattr("own")?;
    }
    module.add_function(wrap_pyfunction!(visible_frames, module)?)?;
    module.add_function(wrap_pyfunction!(usage_frames, module)?)?;
    module.add_function(wrap_pyfunction!(usage_lines, module)?)?;
    module.add_function(wrap_pyfunction!(usage_top, module)?)?;
    module.add_function(wrap_pyfunction!(usage_tree, module)?)?;
    module.add_function(wrap_pyfunction!(shorten, module)?)?;
    module.add_function(wrap_pyfunction!(size_text, module)?)
}

/// The frames of a stack, innermost first.
type FrameList<'py> = Vec<Bound<'py, PyFrame>>;
/// A stack, its bytes and its blocks.
type UsageArgument<'py> = (FrameList<'py>, i64, i64);

fn frames(stack: &[Bound<'_, PyFrame>]) -> Vec<Arc<Frame>> {
    let package = stack.first().and_then(|frame| package(frame.py()));
    let marked = |frame: &Bound<'_, PyFrame>| {
        let mut frame = Arc::clone(&frame.get().frame);
        if package.is_some_and(|package| frame.is_in(package)) {
            Arc::make_mut(&mut frame).is_own = true;
        }
        frame
    };
    stack.iter().map(marked).collect()
}

/// Returns the folder of this package.
fn package(py: Python<'_>) -> Option<&'static str> {
    static PACKAGE: PyOnceLock<Option<String>> = PyOnceLock::new();
    let folder = || {
        let file = py.import("stackweave._native").ok()?.filename().ok()?.to_string();
        file.rsplit_once('/').map(|(folder, _)| folder.to_owned())
    };
    PACKAGE.get_or_init(py, folder).as_deref()
}

fn stacks_of(used: &[UsageArgument<'_>]) -> Vec<StackUsage> {
    let of = |(stack, bytes, blocks): &UsageArgument<'_>| StackUsage {
        frames: frames(stack),
        bytes: *bytes,
        blocks: *blocks,
    };
    used.iter().map(of).collect()
}

/// Returns the frames that show where memory was allocated, without frames of the interpreter and of this package.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn visible_frames<'py>(py: Python<'py>, stack: FrameList<'py>) -> PyResult<Bound<'py, PyTuple>> {
    let visible: Vec<Arc<Frame>> = stackweave_profile::usage::visible_frames(&frames(&stack)).map(Arc::clone).collect();
    tuple_of(py, &visible)
}

/// Returns the frames as text, without internal frames of native modules.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn usage_frames(stack: FrameList<'_>) -> Vec<String> {
    stackweave_cli::text::usage_frames(&frames(&stack), std::env::current_dir().ok().as_deref())
}

/// Returns the lines of a table. Each row is a stack, its bytes, its blocks and its notes.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn usage_lines(
    py: Python<'_>,
    rows: Vec<(FrameList<'_>, i64, i64, String)>,
    total: i64,
    limit: usize,
    depth: usize,
) -> Vec<String> {
    suppress_recording_if_active(py, || {
        let of = |(stack, bytes, blocks, notes): &(FrameList<'_>, i64, i64, String)| {
            (StackUsage { frames: frames(stack), bytes: *bytes, blocks: *blocks }, notes.clone())
        };
        let rows: Vec<_> = rows.iter().map(of).collect();
        let folder = std::env::current_dir().ok();
        UsageLines { total, limit, depth, folder: folder.as_deref() }.of(&rows)
    })
}

/// A function, its file or module, and its line; then its self bytes, total bytes and self blocks.
type FunctionRow = (String, Option<String>, Option<u32>, i64, i64, i64);

/// Returns the memory of each function, by self bytes in descending order.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn usage_top(py: Python<'_>, stacks: Vec<UsageArgument<'_>>) -> Vec<FunctionRow> {
    suppress_recording_if_active(py, || {
        let functions = function_usage(&stacks_of(&stacks)).into_iter();
        let row = |of: stackweave_profile::usage::FunctionUsage| {
            let filename = of.filename.map(|filename| filename.to_string());
            (of.name.to_string(), filename, of.line, of.self_cost, of.total, of.blocks)
        };
        functions.map(row).collect()
    })
}

/// Returns the call tree of allocations.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
fn usage_tree(py: Python<'_>, measure: String, stacks: Vec<UsageArgument<'_>>, all: bool) -> PyUsageTree {
    let tree = suppress_recording_if_active(py, || UsageTree::of(&stacks_of(&stacks), all));
    PyUsageTree { tree: Arc::new((tree, measure)), index: 0 }
}

/// Shortens a long C++ or Rust name: omits template arguments and parameters, then outer scopes.
#[pyfunction]
#[pyo3(signature = (name, width=60))]
fn shorten(name: &str, width: usize) -> String {
    stackweave_cli::text::shorten(name, width).into_owned()
}

/// Formats a size as the command does: 12 B, 1.50 KiB, 640 MiB.
#[pyfunction]
fn size_text(size: f64) -> String {
    Measure::LiveBytes.text(size)
}

/// A function and the memory that it and its callees have allocated. The root is the program, and has no function.
///
/// >>> with stackweave.memory("heap.swv") as recorder:
/// ...     block = bytearray(1_000_000)
/// >>> recorder.recording.peak().tree().total >= 1_000_000
/// True
#[pyclass(frozen, module = "stackweave", name = "UsageTree")]
#[derive(Debug)]
pub(crate) struct PyUsageTree {
    /// The tree, and its measure.
    tree: Arc<(UsageTree, String)>,
    index: usize,
}

impl PyUsageTree {
    fn node(&self) -> &UsageNode {
        &self.tree.0.nodes()[self.index]
    }

    fn frame(&self) -> Option<&Frame> {
        self.node().frame.as_deref()
    }
}

#[pymethods]
impl PyUsageTree {
    /// The measure: "live", "peak" or another one.
    #[getter]
    fn measure(&self) -> &str {
        &self.tree.1
    }

    /// The bytes that the function and its callees have allocated.
    #[getter]
    fn total(&self) -> i64 {
        self.node().total
    }

    /// The bytes that the function itself has allocated.
    #[getter]
    fn own(&self) -> i64 {
        self.node().self_cost
    }

    /// The blocks that the function and its callees have allocated.
    #[getter]
    fn blocks(&self) -> i64 {
        self.node().blocks
    }

    #[getter]
    fn name(&self) -> Option<&str> {
        self.node().function()
    }

    #[getter]
    fn filename(&self) -> Option<&str> {
        self.frame()?.filename.as_deref()
    }

    /// The line of the call or allocation.
    #[getter]
    fn lineno(&self) -> Option<u32> {
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

    /// The callees, by bytes in descending order.
    #[getter]
    fn children<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let child = |index: &usize| Bound::new(py, Self { tree: Arc::clone(&self.tree), index: *index });
        PyTuple::new(py, self.node().children.iter().map(child).collect::<PyResult<Vec<_>>>()?)
    }

    fn __str__(&self, py: Python<'_>) -> String {
        let (tree, measure) = &*self.tree;
        let text = suppress_recording_if_active(py, || usage_tree_text(tree, self.index, measure));
        text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
    }

    #[expect(clippy::cast_precision_loss, reason = "written with few digits")]
    fn __repr__(&self) -> String {
        let name = self.node().function().unwrap_or(&self.tree.1);
        let size = size_text(self.node().total as f64);
        printable(&format!("<stackweave.UsageTree {name}: {size}>"))
    }
}
