//! Reads the options of a recording, which the Python part has checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_recording::clock::ClockSource;
use stackweave_recording::file::ProcessStart;
use stackweave_recording::{RecorderOptions, RingLimits, WhenFull};

use crate::memory::{MemorySettings, settings_of};
use crate::options::from_dict;

from_dict! {
    /// The options as Python writes them.
    struct RecordingKeywords {
        path: PathBuf,
        buffer: usize,
        when_full: String,
        ring: Option<(Option<u64>, Option<f64>)>,
        dump_at_exit: bool,
        flush_every: f64,
        follow_forks: bool,
        subprocesses: bool,
        overwrite: bool,
        python: String,
        package: String,
        named_later: Option<bool>,
        numbered: Option<bool>,
        timing: Option<bool>,
        own_clock: Option<bool>,
        extra: Option<BTreeMap<String, String>>,
        memory_recorder: Option<Py<PyAny>>,
    }
}

/// Reads the options of a recording, and those of memory if that is recorded.
pub(super) fn options_of(dict: &Bound<'_, PyDict>) -> PyResult<(RecorderOptions, Option<MemorySettings>)> {
    let given = RecordingKeywords::from_dict(dict)?;
    let memory = memory_settings(given.memory_recorder.as_ref().map(|settings| settings.bind(dict.py())))?;
    let mut extra = given.extra.unwrap_or_default();
    extra.insert(ProcessStart::PACKAGE.to_owned(), given.package);
    if given.timing.unwrap_or(false) {
        extra.insert("timing".to_owned(), "1".to_owned());
    }
    let mut options = RecorderOptions {
        memory: given.buffer,
        when_full: if given.when_full == "drop" { WhenFull::Drop } else { WhenFull::Block },
        ring: given.ring.map(|(bytes, seconds)| RingLimits { bytes, seconds }),
        dump_at_exit: given.dump_at_exit,
        flush_every: Duration::try_from_secs_f64(given.flush_every).unwrap_or(Duration::MAX),
        follow_forks: given.follow_forks,
        subprocesses: given.subprocesses,
        overwrite: given.overwrite,
        named_later: given.named_later.unwrap_or(false),
        numbered: given.numbered.unwrap_or(false),
        python: Some(given.python),
        clock: given.own_clock.unwrap_or(false).then_some(ClockSource::Monotonic),
        extra,
        ..RecorderOptions::new(given.path)
    };
    if let Some(memory) = &memory {
        memory.apply_to(&mut options);
    }
    Ok((options, memory))
}

/// Reads the memory settings, if memory is recorded.
pub(super) fn memory_settings(settings: Option<&Bound<'_, PyAny>>) -> PyResult<Option<MemorySettings>> {
    match settings {
        Some(options) if !options.is_none() => settings_of(options.cast()?).map(Some),
        _ => Ok(None),
    }
}
