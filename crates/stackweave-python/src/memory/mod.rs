//! `MemoryRecorder`: every allocation of the process, into a recording. The native part; `stackweave._memory` is the other.

mod answers;
mod kept_hooks;
mod options;
mod quietly;
mod recorder;

pub(crate) use options::{MemorySetting, setting_of};
pub(crate) use quietly::quietly_if_recorded;

use pyo3::prelude::*;

/// Adds the type to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<kept_hooks::KeptMemoryHooks>()?;
    module.add_class::<recorder::MemoryRecorder>()
}
