//! `Timing`: records the phases of a program. `stackweave._recorders.timing` is the Python part.

mod anomaly_tally;
mod arguments;
mod inspection;
mod phase;
mod phase_entries;
mod phase_functions;
mod phase_methods;
mod state;

pub(crate) use state::TimingState;

use pyo3::prelude::*;

/// Adds the types and functions to the module, and the methods to `Feed`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<phase::PyPhase>()?;
    phase_methods::add_to(module.py())?;
    inspection::add_to(module)
}
