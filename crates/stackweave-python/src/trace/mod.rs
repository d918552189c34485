//! `Tracer`: every call of the program, into a recording. The native part; `stackweave._trace` is the other.

mod asker;
mod options;
mod statistics;
mod tracer;

use pyo3::prelude::*;

/// Adds the type to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<tracer::Tracer>()
}
