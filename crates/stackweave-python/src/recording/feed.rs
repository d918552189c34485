//! `Feed`: the native part of a live recording, from its start to its end.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use stackweave_recording::{Recorder, Summary};

use super::feed_mode::FeedMode;
use super::options::{memory_settings, options_of};
use super::{audit_hook, label_cache, thread_names, writer_names, writer_wait};
use crate::errors::Error;
use crate::memory::MemorySettings;
use crate::timing::TimingState;

/// The environment variable by which a recording is passed on to other programs.
const VARIABLE: &str = "STACKWEAVE_RECORDING";

/// The base class of recordings, which records events.
#[pyclass(frozen, subclass, module = "stackweave._native")]
pub(crate) struct Feed {
    mode: AtomicU8,
    recorder: OnceLock<Recorder>,
    /// The serial number in this process, from 1; 0 before the start. A forked child has a new number.
    serial: AtomicU32,
    /// Whether a trace writes to the recording, even if it is paused.
    is_traced: AtomicBool,
    /// The recorder of phases, if the recording is a `Timing`.
    timing: OnceLock<TimingState>,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("mode", &self.mode()).finish_non_exhaustive()
    }
}

impl Feed {
    #[inline]
    pub(crate) fn mode(&self) -> FeedMode {
        FeedMode::from_number(self.mode.load(Ordering::Relaxed))
    }

    fn set_mode(&self, mode: FeedMode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Returns the recorder if events are recorded without further checks.
    #[inline]
    pub(super) fn recording(&self) -> Option<&Recorder> {
        if self.mode.load(Ordering::Relaxed) == FeedMode::Recording as u8 { self.recorder.get() } else { None }
    }

    /// Returns whether a trace writes to the recording, even if it is paused.
    pub(super) fn is_traced(&self) -> bool {
        self.is_traced.load(Ordering::Relaxed)
    }

    /// Sets whether a trace writes to the recording.
    pub(crate) fn set_traced(&self, is_traced: bool) {
        self.is_traced.store(is_traced, Ordering::Relaxed);
        match (self.mode(), is_traced) {
            (FeedMode::Recording | FeedMode::Resumed, true) => self.set_mode(FeedMode::Traced),
            (FeedMode::Traced, false) => self.set_mode(FeedMode::Resumed),
            _ => {}
        }
    }

    /// Returns the recorder of a recording that was started.
    pub(crate) fn recorder(&self) -> PyResult<&Recorder> {
        self.recorder.get().ok_or_else(|| self.mode().error().into())
    }

    /// Returns the recorder of phases, if the recording is a `Timing` that has started.
    #[inline]
    pub(crate) fn timing(&self) -> Option<&TimingState> {
        self.timing.get()
    }

    /// Sets the recorder of phases. Returns it if there is one already.
    pub(crate) fn set_timing(&self, timing: TimingState) -> Result<(), TimingState> {
        self.timing.set(timing)
    }

    pub(super) fn serial(&self) -> u32 {
        self.serial.load(Ordering::Relaxed)
    }

    fn begin_recording(&self, recorder: Recorder) {
        // There is only one recorder, because `_start` checks the mode with the GIL held.
        if self.recorder.set(recorder).is_ok() {
            self.serial.store(thread_names::next_serial(), Ordering::Relaxed);
            self.set_mode(FeedMode::Recording);
        }
    }
}

#[pymethods]
impl Feed {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            mode: AtomicU8::new(FeedMode::New as u8),
            recorder: OnceLock::new(),
            serial: AtomicU32::new(0),
            is_traced: AtomicBool::new(false),
            timing: OnceLock::new(),
        }
    }

    /// Starts to record, with options that the Python part has checked.
    fn _start(&self, py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<()> {
        if !matches!(self.mode(), FeedMode::New | FeedMode::Skipped) {
            return Err(Error::state("a recording can be started once: create another one").into());
        }
        let (options, memory) = options_of(options)?;
        let observer = memory.map(|memory| memory.observer());
        writer_wait::release_gil_while_waiting();
        let names = writer_names::names();
        let started = py.detach(|| Recorder::start_observed(options, stackweave_capture::stacks(), names, observer));
        self.begin_recording(started.map_err(Error::from)?);
        audit_hook::install(py);
        Ok(())
    }

    /// Starts to record with the options that a recording of the parent process has set in the environment. Returns False if
    /// there are none.
    #[pyo3(signature = (memory_recorder = None))]
    fn _start_from_environment(&self, py: Python<'_>, memory_recorder: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let memory = memory_settings(memory_recorder)?;
        writer_wait::release_gil_while_waiting();
        let names = writer_names::names();
        let started = py.detach(|| {
            let observer = memory.as_ref().map(MemorySettings::observer);
            Recorder::from_environment_observed(stackweave_capture::stacks(), names, observer, |options| {
                if let Some(memory) = &memory {
                    memory.apply_to(options);
                }
            })
        });
        let Some(recorder) = started.map_err(Error::from)? else {
            return Ok(false);
        };
        self.begin_recording(recorder);
        audit_hook::install(py);
        Ok(true)
    }

    /// Stops the recording, by a call of the program or at its exit. Returns path, events, bytes, lost and error.
    fn _stop<'py>(&self, py: Python<'py>, by_program: bool) -> PyResult<Bound<'py, PyTuple>> {
        let recorder = self.recorder()?;
        self.set_mode(if by_program { FeedMode::Stopped } else { FeedMode::Over });
        let summary = py.detach(|| recorder.stop());
        label_cache::clear(py);
        if let Some(timing) = self.timing() {
            timing.stopped();
        }
        tuple_of(py, &summary)
    }

    /// Renames the file to its final name, if that was postponed.
    fn _publish(&self, py: Python<'_>) -> PyResult<()> {
        let recorder = self.recorder()?;
        Ok(py.detach(|| recorder.publish()).map_err(Error::from)?)
    }

    /// Removes the files that the recording has created, and no others.
    fn _discard_files(&self, py: Python<'_>) -> PyResult<()> {
        let recorder = self.recorder()?;
        py.detach(|| recorder.discard_files());
        Ok(())
    }

    /// Returns how many forked processes could not start to record.
    fn _unrecorded_children(&self) -> u64 {
        self.recorder.get().map_or(0, Recorder::unrecorded_children)
    }

    /// Writes the recorded events to the file.
    fn _flush(&self, py: Python<'_>) -> PyResult<()> {
        let recorder = self.recorder()?;
        Ok(py.detach(|| recorder.flush()).map_err(Error::from)?)
    }

    /// Writes the ring to a file.
    fn _dump(&self, py: Python<'_>, path: Option<PathBuf>) -> PyResult<OsString> {
        let recorder = self.recorder()?;
        let dumped = py.detach(move || recorder.dump(path.as_deref()));
        Ok(dumped.map_err(Error::from)?.into())
    }

    /// Returns whether any thread of this process has recorded events. A forked child may have none.
    fn _has_recorded(&self) -> bool {
        self.recorder.get().is_some_and(|recorder| recorder.stats().threads > 0)
    }

    /// Returns the path of the recording.
    fn _path(&self) -> PyResult<OsString> {
        Ok(self.recorder()?.path().into())
    }

    /// Sets the name for a message on standard error if SIGTERM or SIGHUP ends this process.
    fn _announce_as(&self, name: &str) -> PyResult<()> {
        self.recorder()?.announce_as(name);
        Ok(())
    }

    /// Records the name of a thread by its number in the kernel; None is the calling thread.
    fn _name_thread(&self, tid: Option<u32>, name: &str) -> PyResult<()> {
        let recorder = self.recorder()?;
        match tid {
            Some(tid) => recorder.name_other_thread(tid, name),
            None => recorder.name_thread(name),
        }
        Ok(())
    }

    /// Returns the options in the environment by which other programs start to record.
    #[staticmethod]
    fn _environment() -> Option<OsString> {
        std::env::var_os(VARIABLE)
    }

    /// Resets a forked child, in which no thread was named.
    fn _forked(&self) {
        if self.serial() != 0 {
            self.serial.store(thread_names::next_serial(), Ordering::Relaxed);
        }
        if let Some(timing) = self.timing() {
            timing.forked();
        }
    }

    /// Stops recording events until resume().
    ///
    /// The ends of spans that began before are still recorded.
    fn pause(&self) -> PyResult<()> {
        match self.mode() {
            FeedMode::Recording | FeedMode::Resumed | FeedMode::Traced => self.set_mode(FeedMode::Paused),
            FeedMode::Paused | FeedMode::Over | FeedMode::Skipped => {}
            mode => return Err(mode.error().into()),
        }
        Ok(())
    }

    /// Records events again after pause().
    fn resume(&self) -> PyResult<()> {
        match self.mode() {
            FeedMode::Paused if self.is_traced() => self.set_mode(FeedMode::Traced),
            FeedMode::Paused => self.set_mode(FeedMode::Resumed),
            FeedMode::Recording | FeedMode::Resumed | FeedMode::Traced | FeedMode::Over | FeedMode::Skipped => {}
            mode => return Err(mode.error().into()),
        }
        Ok(())
    }

    /// Skips the recording, because another one is active. It can be started later.
    fn _skip(&self) {
        self.set_mode(FeedMode::Skipped);
    }

    /// "new", "recording", "paused", "stopped" or "skipped".
    ///
    /// A forked process that could not start to record is "stopped".
    #[getter]
    fn state(&self) -> &'static str {
        match self.mode() {
            mode if mode.records_ends() && self.recorder.get().is_some_and(|recorder| recorder.failure().is_some()) => {
                "stopped"
            }
            FeedMode::New => "new",
            FeedMode::Recording | FeedMode::Resumed | FeedMode::Traced => "recording",
            FeedMode::Paused => "paused",
            FeedMode::Stopped | FeedMode::Over => "stopped",
            FeedMode::Skipped => "skipped",
        }
    }
}

fn tuple_of<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyTuple>> {
    let lost = PyDict::new(py);
    for (reason, count) in &summary.lost {
        lost.set_item(reason.to_string(), count)?;
    }
    (summary.path.as_os_str(), summary.events, summary.bytes_written, lost, summary.error.as_deref()).into_pyobject(py)
}
