//! Reads the options of a memory recorder, which the Python part has checked.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_memory::{MemoryMode, MemoryOptions, MemoryRecorder};
use stackweave_recording::{MakeObserver, RecorderOptions};

use crate::options::from_dict;

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
    pub(crate) fn apply_to(&self, recording: &mut RecorderOptions) {
        recording.bypass_waiter = true;
        recording.extra.extend(self.extra().map(|(name, value)| (name.to_owned(), value)));
    }

    /// Returns the observer that tracks the live memory on the writer's thread.
    pub(crate) fn observer(&self) -> MakeObserver {
        MemoryRecorder::observer(&self.options)
    }

    /// Returns the entries of the recording's header.
    fn extra(&self) -> impl Iterator<Item = (&'static str, String)> {
        let MemoryOptions { mode, native, python_allocators, temporary, .. } = self.options;
        let (name, every) = match mode {
            MemoryMode::History => ("history", None),
            MemoryMode::Aggregate => ("aggregate", None),
            MemoryMode::Sampled { every } => ("sampled", Some(every)),
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

from_dict! {
    /// The options as Python writes them.
    struct MemoryKeywords {
        mode: String,
        sample_every: Option<u64>,
        native: bool,
        python_allocators: bool,
        free_stacks: bool,
        own_memory: bool,
        mappings: bool,
        depth: Option<usize>,
        temporary: u32,
        curve_every: f64,
        dump_signal: Option<i32>,
        dump_at_rss: Option<u64>,
        beside_calls: Option<bool>,
    }
}

fn mode_of(name: &str, sample_every: Option<u64>) -> PyResult<MemoryMode> {
    match (name, sample_every) {
        ("history", _) => Ok(MemoryMode::History),
        ("aggregate", _) => Ok(MemoryMode::Aggregate),
        ("sampled", Some(every)) if every > 0 => Ok(MemoryMode::Sampled { every }),
        ("sampled", _) => Err(PyValueError::new_err("sample_every must be a number of bytes")),
        (other, _) => Err(PyValueError::new_err(format!("mode must be history, aggregate or sampled, not {other:?}"))),
    }
}

/// Reads settings from a dict.
pub(crate) fn settings_of(dict: &Bound<'_, PyDict>) -> PyResult<MemorySettings> {
    let given = MemoryKeywords::from_dict(dict)?;
    let curve_every = Duration::try_from_secs_f64(given.curve_every)
        .map_err(|error| PyValueError::new_err(format!("curve_every: {error}")))?;
    let options = MemoryOptions {
        mode: mode_of(&given.mode, given.sample_every)?,
        native: given.native,
        python_allocators: given.python_allocators,
        free_stacks: given.free_stacks,
        own_memory: given.own_memory,
        mappings: given.mappings,
        depth: given.depth.unwrap_or(MemoryOptions::default().depth),
        temporary: given.temporary,
        curve_every,
        dump_at_rss: given.dump_at_rss,
    };
    let beside_calls = given.beside_calls.unwrap_or(false);
    Ok(MemorySettings { options, dump_signal: given.dump_signal, beside_calls })
}
