//! `Feed`: the native half of a live `Recording`, from its start to its end.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use stackweave_recording::{Recorder, Summary};

use super::options::options_of;
use super::{exec_hook, label_cache, this_process, thread_names, waiting};
use crate::errors::Error;
use crate::memory::{MemorySetting, setting_of};
use crate::timing::TimingState;

/// What a recording leaves in the environment for other programs.
const VARIABLE: &str = "STACKWEAVE_RECORDING";

/// What a recording does with what it is fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Not started yet.
    New,
    /// Records.
    Recording,
    /// Records, and was paused before: open spans are looked after, since some have no beginning.
    Resumed,
    /// Leaves out what begins.
    Paused,
    /// Was stopped by the program, which must not feed it any more.
    Stopped,
    /// Ended with the program: whatever still runs may feed it, in vain.
    Over,
    /// Was read from files.
    Opened,
    /// Records, and is traced: spans lie among the calls.
    Traced,
    /// Was not started, since another one records: what it is fed is left out.
    Skipped,
}

const MODES: [Mode; 9] = [
    Mode::New,
    Mode::Recording,
    Mode::Resumed,
    Mode::Paused,
    Mode::Stopped,
    Mode::Over,
    Mode::Opened,
    Mode::Traced,
    Mode::Skipped,
];

/// What Recording is made of: it takes what it is fed.
#[pyclass(frozen, subclass, module = "stackweave._native")]
pub(crate) struct Feed {
    mode: AtomicU8,
    recorder: OnceLock<Recorder>,
    /// Which recording of this process it is, from 1; 0 before it starts. Another one in a forked child.
    serial: AtomicU32,
    /// Whether a trace goes on that writes to it, paused or not.
    is_traced: AtomicBool,
    /// What records phases, if it is a `Timing`.
    timing: OnceLock<TimingState>,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("mode", &self.mode()).finish_non_exhaustive()
    }
}

impl Feed {
    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        MODES[usize::from(self.mode.load(Ordering::Relaxed)) % MODES.len()]
    }

    fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// The recorder, if what happens now is to be recorded without further ado.
    #[inline]
    pub(super) fn recording(&self) -> Option<&Recorder> {
        if self.mode.load(Ordering::Relaxed) == Mode::Recording as u8 { self.recorder.get() } else { None }
    }

    /// Whether a trace goes on that writes to it, paused or not.
    pub(super) fn is_traced(&self) -> bool {
        self.is_traced.load(Ordering::Relaxed)
    }

    /// A trace that writes to it begins, or ends.
    pub(crate) fn set_traced(&self, is_traced: bool) {
        self.is_traced.store(is_traced, Ordering::Relaxed);
        match (self.mode(), is_traced) {
            (Mode::Recording | Mode::Resumed, true) => self.set_mode(Mode::Traced),
            (Mode::Traced, false) => self.set_mode(Mode::Resumed),
            _ => {}
        }
    }

    /// The recorder, once the recording was started.
    pub(crate) fn recorder(&self) -> PyResult<&Recorder> {
        self.recorder.get().ok_or_else(|| self.mode().error().into())
    }

    /// What records phases, if it is a `Timing` that has begun.
    #[inline]
    pub(crate) fn timing(&self) -> Option<&TimingState> {
        self.timing.get()
    }

    /// Takes phases from now on. They are given back if it does already.
    pub(crate) fn set_timing(&self, timing: TimingState) -> Result<(), TimingState> {
        self.timing.set(timing)
    }

    pub(super) fn serial(&self) -> u32 {
        self.serial.load(Ordering::Relaxed)
    }

    fn begin_recording(&self, recorder: Recorder) {
        // Only the first can be kept: `_start` looks at the mode with the GIL held.
        if self.recorder.set(recorder).is_ok() {
            self.serial.store(thread_names::next_serial(), Ordering::Relaxed);
            self.set_mode(Mode::Recording);
        }
    }
}

impl Mode {
    /// Whether what has begun before ends in the recording.
    pub(crate) fn takes_ends(self) -> bool {
        matches!(self, Self::Recording | Self::Resumed | Self::Traced | Self::Paused)
    }

    /// Why nothing can be fed; `None` if it can, or is left out in silence.
    pub(super) fn complaint(self) -> Option<&'static str> {
        match self {
            Self::New => Some("the recording has not begun: call start(), or use it in a with statement"),
            Self::Stopped => Some("the recording was stopped, and takes nothing more"),
            Self::Opened => Some("the recording was read from a file, and takes nothing more"),
            Self::Recording | Self::Resumed | Self::Traced | Self::Paused | Self::Over | Self::Skipped => None,
        }
    }

    /// The same as an error.
    fn error(self) -> Error {
        Error::state(self.complaint().unwrap_or("no recorder"))
    }
}

#[pymethods]
impl Feed {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            mode: AtomicU8::new(Mode::New as u8),
            recorder: OnceLock::new(),
            serial: AtomicU32::new(0),
            is_traced: AtomicBool::new(false),
            timing: OnceLock::new(),
        }
    }

    /// Begins to record, with options as the Python part has checked them.
    fn _start(&self, py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<()> {
        if !matches!(self.mode(), Mode::New | Mode::Skipped) {
            return Err(Error::state("a recording can be started once: make another one").into());
        }
        let memory = memory_setting(options.get_item("memory_recorder")?.as_ref())?;
        let mut options = options_of(options)?;
        if let Some(memory) = &memory {
            memory.apply_to(&mut options);
        }
        let observer = memory.map(|memory| memory.observer());
        waiting::let_python_run();
        let names = this_process::names();
        let started = py.detach(|| Recorder::start_observed(options, stackweave_capture::stacks(), names, observer));
        self.begin_recording(started.map_err(Error::from)?);
        exec_hook::install(py);
        Ok(())
    }

    /// Begins to record as the environment says, which a recording of a parent process has left there. False if it says
    /// nothing.
    #[pyo3(signature = (memory_recorder = None))]
    fn _start_from_environment(&self, py: Python<'_>, memory_recorder: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let memory = memory_setting(memory_recorder)?;
        waiting::let_python_run();
        let names = this_process::names();
        let started = py.detach(|| {
            let observer = memory.as_ref().map(MemorySetting::observer);
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
        exec_hook::install(py);
        Ok(true)
    }

    /// Ends the recording: as the program says, or with it. Gives path, events, bytes, lost and error.
    fn _stop<'py>(&self, py: Python<'py>, by_program: bool) -> PyResult<Bound<'py, PyTuple>> {
        let recorder = self.recorder()?;
        self.set_mode(if by_program { Mode::Stopped } else { Mode::Over });
        let summary = py.detach(|| recorder.stop());
        label_cache::clear(py);
        if let Some(timing) = self.timing() {
            timing.stopped();
        }
        tuple_of(py, &summary)
    }

    /// Gives the file its name, where that was left for later.
    fn _publish(&self, py: Python<'_>) -> PyResult<()> {
        let recorder = self.recorder()?;
        Ok(py.detach(|| recorder.publish()).map_err(Error::from)?)
    }

    /// Removes the files that it has created, and nothing else.
    fn _discard_files(&self, py: Python<'_>) -> PyResult<()> {
        let recorder = self.recorder()?;
        py.detach(|| recorder.discard_files());
        Ok(())
    }

    /// How many forked processes could not begin to record.
    fn _unrecorded_children(&self) -> u64 {
        self.recorder.get().map_or(0, Recorder::unrecorded_children)
    }

    /// Writes what was recorded before.
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

    /// Whether any thread of this process has recorded: a forked child may have nothing to write.
    fn _has_recorded(&self) -> bool {
        self.recorder.get().is_some_and(|recorder| recorder.stats().threads > 0)
    }

    /// Where it is recorded.
    fn _path(&self) -> PyResult<OsString> {
        Ok(self.recorder()?.path().into())
    }

    /// Has a line written to standard error if SIGTERM or SIGHUP ends this process.
    fn _announce_as(&self, name: &str) -> PyResult<()> {
        self.recorder()?.announce_as(name);
        Ok(())
    }

    /// Names a thread by its number in the kernel; the calling one for None.
    fn _name_thread(&self, tid: Option<u32>, name: &str) -> PyResult<()> {
        let recorder = self.recorder()?;
        match tid {
            Some(tid) => recorder.name_other_thread(tid, name),
            None => recorder.name_thread(name),
        }
        Ok(())
    }

    /// How other programs are told to record, as the environment says it now.
    #[staticmethod]
    fn _environment() -> Option<OsString> {
        std::env::var_os(VARIABLE)
    }

    /// In a forked child: its threads have not been named yet.
    fn _forked(&self) {
        if self.serial() != 0 {
            self.serial.store(thread_names::next_serial(), Ordering::Relaxed);
        }
        if let Some(timing) = self.timing() {
            timing.forked();
        }
    }

    /// From now on it takes nothing: it was read from files.
    fn _opened(&self) {
        self.set_mode(Mode::Opened);
    }

    /// Leaves out what happens from now on, until resume().
    ///
    /// Spans that began before end all the same.
    fn pause(&self) -> PyResult<()> {
        match self.mode() {
            Mode::Recording | Mode::Resumed | Mode::Traced => self.set_mode(Mode::Paused),
            Mode::Paused | Mode::Over | Mode::Skipped => {}
            mode => return Err(mode.error().into()),
        }
        Ok(())
    }

    /// Records again, after pause().
    fn resume(&self) -> PyResult<()> {
        match self.mode() {
            Mode::Paused if self.is_traced() => self.set_mode(Mode::Traced),
            Mode::Paused => self.set_mode(Mode::Resumed),
            Mode::Recording | Mode::Resumed | Mode::Traced | Mode::Over | Mode::Skipped => {}
            mode => return Err(mode.error().into()),
        }
        Ok(())
    }

    /// Another one records: nothing is recorded here. It may be started again.
    fn _skip(&self) {
        self.set_mode(Mode::Skipped);
    }

    /// "new", "recording", "paused", "stopped", "skipped" or "opened".
    ///
    /// A forked process that could not begin to record is "stopped".
    #[getter]
    fn state(&self) -> &'static str {
        match self.mode() {
            mode if mode.takes_ends() && self.recorder.get().is_some_and(|recorder| recorder.failure().is_some()) => {
                "stopped"
            }
            Mode::New => "new",
            Mode::Recording | Mode::Resumed | Mode::Traced => "recording",
            Mode::Paused => "paused",
            Mode::Stopped | Mode::Over => "stopped",
            Mode::Opened => "opened",
            Mode::Skipped => "skipped",
        }
    }
}

/// How memory is recorded, if it is.
fn memory_setting(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<MemorySetting>> {
    match given {
        Some(options) if !options.is_none() => setting_of(options.cast()?).map(Some),
        _ => Ok(None),
    }
}

fn tuple_of<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyTuple>> {
    let lost = PyDict::new(py);
    for (reason, count) in &summary.lost {
        lost.set_item(reason.to_string(), count)?;
    }
    (summary.path.as_os_str(), summary.events, summary.bytes_written, lost, summary.error.as_deref()).into_pyobject(py)
}
