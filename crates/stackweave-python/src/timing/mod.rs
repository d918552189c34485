//! `Timing`: phases that a program tells of, in a recording. The native part; `stackweave._timing` is the other.

mod arguments;
mod entries;
mod feeding;
mod feeding_methods;
mod looking;
mod phase;
mod state;
mod tally;

pub(crate) use state::TimingState;

use pyo3::prelude::*;

/// Adds the types and functions to the module, and the methods to `Feed`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<phase::Phase>()?;
    feeding_methods::add_to(module.py())?;
    looking::add_to(module)
}
