//! The Python class `CallTree`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use stackweave_cli::text::{TreeOptions, write_hidden, write_tree};
use stackweave_core::printable;
use stackweave_profile::{Children, Cost, Function, Node, NodeId, Profile, Statistics};

use super::hidden::{ALL, PyHidden};
use super::{cost, own_as_self};
use crate::errors::Error;

/// Adds the type to the module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCallTree>()?;
    own_as_self(&module.py().get_type::<PyCallTree>())
}

#[derive(Debug)]
struct ProfileTree {
    profile: Profile,
    children: Children,
}

/// A function in the tree of its callers, and its cost there. The root is the whole program.
///
/// >>> with stackweave.trace("calls.swv") as recorder:
/// ...     main()
/// >>> recorder.recording.tree().measure
/// 'time'
#[pyclass(frozen, module = "stackweave", name = "CallTree")]
#[derive(Debug)]
pub(crate) struct PyCallTree {
    tree: Arc<ProfileTree>,
    id: NodeId,
}

impl PyCallTree {
    pub(super) fn root(py: Python<'_>, profile: Profile) -> PyResult<Bound<'_, Self>> {
        let children = profile.tree().children();
        Bound::new(py, Self { tree: Arc::new(ProfileTree { profile, children }), id: NodeId::ROOT })
    }

    fn node(&self) -> &Node {
        self.tree.profile.tree().node(self.id)
    }

    fn called(&self) -> Option<&Function> {
        (self.id != NodeId::ROOT).then(|| self.tree.profile.functions().function_of(self.node().frame))
    }

    fn cost<'py>(&self, py: Python<'py>, of: fn(&Cost) -> i64) -> PyResult<Bound<'py, PyAny>> {
        cost(py, self.tree.profile.measure(), of(&self.node().cost))
    }
}

#[pymethods]
impl PyCallTree {
    /// The qualified name of the function, or the name of a span. None for the root.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.called().map(|function| &**function.full_name())
    }

    /// The source file.
    #[getter]
    fn filename(&self) -> Option<&str> {
        self.called().and_then(|function| function.filename.as_deref())
    }

    /// The line, if the tree distinguishes lines; else the first line of the function.
    #[getter]
    fn lineno(&self) -> Option<u32> {
        let line = self.tree.profile.functions().frames().get(self.node().frame.index())?.line;
        self.called().and_then(|function| line.or(function.first_line))
    }

    /// "python", "native", "script", "extra", or "span". None for the root.
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        self.called().map(|function| function.kind.as_str())
    }

    /// The file name of the library or program of native code.
    #[getter]
    fn module(&self) -> Option<&str> {
        self.called().and_then(|function| function.module_name()).map(|name| &**name)
    }

    /// The cost including all callees, in seconds if the measure is time.
    #[getter]
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.cost(py, |cost| cost.total)
    }

    /// The cost without callees, in seconds if the measure is time.
    #[getter]
    fn own<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.cost(py, |cost| cost.self_cost)
    }

    /// The number of calls, samples or allocations.
    #[getter]
    fn calls(&self) -> u64 {
        self.node().cost.calls
    }

    /// The callees, by cost in descending order.
    #[getter]
    fn children<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut ids = self.tree.children.get(self.id).to_vec();
        ids.sort_by_key(|id| std::cmp::Reverse(self.tree.profile.tree().node(*id).cost.total));
        let nodes = ids.into_iter().map(|id| Self { tree: Arc::clone(&self.tree), id });
        PyTuple::new(py, nodes.map(|node| Bound::new(py, node)).collect::<PyResult<Vec<_>>>()?)
    }

    /// The measure: "time", "samples", "bytes", "allocations", "live", "peak" or "temporary".
    #[getter]
    fn measure(&self) -> &'static str {
        self.tree.profile.measure().as_str()
    }

    /// The functions that are hidden of the whole tree.
    #[getter]
    fn hidden(&self) -> PyHidden {
        PyHidden::of(&self.tree.profile)
    }

    /// Returns the text of the whole tree for the root, and the name of a function.
    fn __str__(&self) -> PyResult<String> {
        if let Some(function) = self.name() {
            return Ok(printable(function));
        }
        let options = TreeOptions::default();
        let mut text = Vec::new();
        let written = write_tree(&mut text, &self.tree.profile, &options);
        let written = written.and_then(|()| write_hidden(&mut text, self.tree.profile.hidden_sentence(ALL)));
        written.map_err(|error| Error::other(error.to_string()))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = printable(self.name().unwrap_or("everything"));
        Ok(format!("<stackweave.CallTree {name}: {} calls, total {}>", self.calls(), self.total(py)?))
    }
}

/// Returns a row for each function: function, file, line, calls, primitive calls, self and total, by cost in descending order.
pub(super) fn rows<'py>(py: Python<'py>, profile: &Profile) -> PyResult<Bound<'py, PyList>> {
    let statistics = Statistics::of(profile);
    let mut functions: Vec<_> = statistics.functions().collect();
    functions.sort_by_key(|(id, cost)| (std::cmp::Reverse((cost.self_cost, cost.total)), *id));
    let rows = PyList::empty(py);
    for (id, statistics) in functions {
        let function = profile.functions().function(id);
        let own = cost(py, profile.measure(), statistics.self_cost)?;
        let total = cost(py, profile.measure(), statistics.total)?;
        let location = (&**function.full_name(), function.filename.as_deref(), function.first_line);
        rows.append((location.0, location.1, location.2, statistics.calls, statistics.primitive_calls, own, total))?;
    }
    Ok(rows)
}
