//! Reads the table of a `.prof` file of any profiler as a graph.

use std::io::Read;
use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use stackweave_export::ExternalGraph;
use stackweave_files::open_regular;

/// Larger files can't be tables of functions.
const MAX_BYTES: u64 = 1 << 30;

/// Returns the functions and calls in a file. `marshal.loads` is not used, because it is not safe for untrusted files.
pub(super) fn read_graph(py: Python<'_>, path: &Path) -> PyResult<ExternalGraph> {
    let title = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let graph = py.detach(|| {
        let mut bytes = Vec::new();
        open_regular(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        std::io::Result::Ok(ExternalGraph::of_pstats(&bytes, title))
    })?;
    graph.ok_or_else(|| PyValueError::new_err("it is not a cProfile file"))
}
