//! The `stackweave` command, for the package's entry point.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, the name of the program first, and gives its exit status.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| stackweave_cli::run(arguments))
}
