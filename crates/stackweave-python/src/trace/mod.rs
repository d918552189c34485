//! `Tracer`: records every call of the program. `stackweave._recorders.trace` is the Python part.

mod options;
mod python_describer;
mod statistics;
mod tracer;

use pyo3::prelude::*;

/// Adds the type to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<tracer::Tracer>()
}
