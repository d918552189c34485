//! `AllocationHooks`: records every allocation of the process. `stackweave._recorders.memory` is the Python part.

mod kept_hooks;
mod options;
mod recorder;
mod snapshot_dicts;
mod suppress;

pub(crate) use options::{MemorySettings, settings_of};
pub(crate) use suppress::suppress_recording_if_active;

use pyo3::prelude::*;

/// Adds the types to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<kept_hooks::KeptMemoryHooks>()?;
    module.add_class::<recorder::AllocationHooks>()
}
