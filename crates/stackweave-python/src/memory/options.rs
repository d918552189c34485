//! Reads the options of a memory recorder, which the Python part has checked.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_memory::{Memory, MemoryOptions, Mode};
use stackweave_recording::{MakeObserver, Options};

/// The options of a memory recording, and the triggers of snapshots.
#[derive(Clone, Debug)]
pub(crate) struct MemorySettings {
    pub(super) options: MemoryOptions,
    /// The signal that triggers a snapshot.
    pub(super) dump_signal: Option<i32>,
    /// Whether the recording also has calls.
    beside_calls: bool,
}

impl MemorySettings {
    /// Adds the settings to the options of the recording.
    pub(crate) fn apply_to(&self, recording: &mut Options) {
        recording.bypass_waiter = true;
        recording.extra.extend(self.extra().map(|(name, value)| (name.to_owned(), value)));
    }

    /// Returns the observer that tracks the live memory on the writer's thread.
    pub(crate) fn observer(&self) -> MakeObserver {
        Memory::observer(&self.options)
    }

    /// Returns the entries of the recording's header.
    fn extra(&self) -> impl Iterator<Item = (&'static str, String)> {
        let MemoryOptions { mode, native, python_allocators, temporary, .. } = self.options;
        let (name, every) = match mode {
            Mode::History => ("history", None),
            Mode::Aggregate => ("aggregate", None),
            Mode::Sampled { every } => ("sampled", Some(every)),
        };
        [
            ("recorder", "memory".to_owned()),
            ("memory.mode", name.to_owned()),
            ("memory.native", u8::from(native).to_string()),
            ("memory.python_allocators", u8::from(python_allocators).to_string()),
            ("memory.temporary", temporary.to_string()),
        ]
        .into_iter()
        .chain(every.map(|every| ("memory.sample_every", every.to_string())))
        .chain(self.beside_calls.then(|| ("calls", "1".to_owned())))
    }
}

fn item<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    match dict.get_item(name)? {
        Some(value) if !value.is_none() => value.extract().map(Some).map_err(Into::into),
        _ => Ok(None),
    }
}

fn mode_of(dict: &Bound<'_, PyDict>) -> PyResult<Mode> {
    match item::<String>(dict, "mode")?.as_deref() {
        None | Some("history") => Ok(Mode::History),
        Some("aggregate") => Ok(Mode::Aggregate),
        Some("sampled") => match item(dict, "sample_every")? {
            Some(every) if every > 0 => Ok(Mode::Sampled { every }),
            _ => Err(PyValueError::new_err("sample_every must be a number of bytes")),
        },
        Some(other) => Err(PyValueError::new_err(format!("mode must be history, aggregate or sampled, not {other:?}"))),
    }
}

/// Reads settings from a dict; missing entries have the default value.
pub(crate) fn settings_of(dict: &Bound<'_, PyDict>) -> PyResult<MemorySettings> {
    let default = MemoryOptions::default();
    let curve_every = match item(dict, "curve_every")? {
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(format!("curve_every: {error}")))?,
        None => default.curve_every,
    };
    let options = MemoryOptions {
        mode: mode_of(dict)?,
        native: item(dict, "native")?.unwrap_or(default.native),
        python_allocators: item(dict, "python_allocators")?.unwrap_or(default.python_allocators),
        free_stacks: item(dict, "free_stacks")?.unwrap_or(default.free_stacks),
        own_memory: item(dict, "own_memory")?.unwrap_or(default.own_memory),
        mappings: item(dict, "mappings")?.unwrap_or(default.mappings),
        depth: item(dict, "depth")?.unwrap_or(default.depth),
        temporary: item(dict, "temporary")?.unwrap_or(default.temporary),
        curve_every,
        dump_at_rss: item(dict, "dump_at_rss")?,
    };
    let beside_calls = item(dict, "beside_calls")?.unwrap_or(false);
    Ok(MemorySettings { options, dump_signal: item(dict, "dump_signal")?, beside_calls })
}
