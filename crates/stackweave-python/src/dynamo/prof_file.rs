//! The table of a `.prof` file of any profiler, as a graph.

use std::io::Read;
use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stackweave_export::GivenGraph;
use stackweave_files::open_regular;

/// Larger files are no tables of functions.
const LARGEST: u64 = 1 << 30;

/// Returns the functions and calls in a file. `marshal.loads` is not made for files of others, so that it is not used.
pub(super) fn read_graph(py: Python<'_>, path: &Path) -> PyResult<GivenGraph> {
    let title = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let graph = py.detach(|| {
        let mut bytes = Vec::new();
        open_regular(path)?.take(LARGEST).read_to_end(&mut bytes)?;
        std::io::Result::Ok(GivenGraph::of_pstats(&bytes, title))
    })?;
    graph.ok_or_else(|| PyValueError::new_err("it is not a table of cProfile"))
}
