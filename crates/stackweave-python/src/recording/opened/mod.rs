//! Recordings that are read from files.

mod column;
mod event;
mod event_values;
mod events;
mod exporting;
mod hidden;
mod history_stacks;
mod info;
mod memory;
mod memory_devices;
mod memory_history;
mod named_process;
mod profile;
mod recorded_stack;
mod timing;
mod tree;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyType};
use stackweave_profile::Measure;
use stackweave_recording::{ProcessRecording, Recording, TimeAxis};

use self::events::PyEvents;
use self::named_process::OpenedProcess;
use crate::errors::Error;

/// Adds the types to the module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<OpenedRecording>()?;
    module.add_class::<column::Column>()?;
    module.add_class::<PyEvents>()?;
    module.add_class::<event::PyEvent>()?;
    module.add_class::<recorded_stack::PyRecordedStack>()?;
    hidden::add_to(module)?;
    tree::add_to(module)
}

/// The recordings of processes, read from their files.
#[pyclass(frozen, module = "stackweave._native")]
#[derive(Debug)]
pub(crate) struct OpenedRecording {
    recording: Recording,
    processes: Vec<Arc<OpenedProcess>>,
    axis: TimeAxis,
    /// The time at which the first process began to record, on the axis.
    base: i64,
}

/// The requested part of a recording.
#[derive(Clone, Copy, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RecordingPart {
    process: Option<u32>,
    thread: Option<u32>,
    start: Option<f64>,
    end: Option<f64>,
}

impl OpenedRecording {
    /// Returns the requested processes.
    fn chosen(&self, selection: &RecordingPart) -> PyResult<Vec<Arc<OpenedProcess>>> {
        let is_it = |process: &&Arc<OpenedProcess>| {
            selection.process.is_none_or(|pid| process.recording.start().pid == pid)
                && selection.thread.is_none_or(|tid| process.recording.dictionary().threads().any(|t| t.tid == tid))
        };
        let chosen: Vec<_> = self.processes.iter().filter(is_it).cloned().collect();
        let (true, RecordingPart { process, thread, .. }) = (chosen.is_empty(), selection) else { return Ok(chosen) };
        let message = match (process, thread) {
            (Some(pid), Some(tid)) => format!("the recording has no thread {tid} of a process {pid}"),
            (Some(pid), None) => format!("the recording has no process {pid}"),
            (None, Some(tid)) => format!("the recording has no thread {tid}"),
            (None, None) => return Ok(chosen),
        };
        Err(Error::recording(message).into())
    }

    /// Returns the recording with only the requested processes.
    fn with_chosen(&self, selection: &RecordingPart) -> PyResult<Recording> {
        let chosen = self.chosen(selection)?;
        let mut recording = self.recording.clone();
        let is_it = |process: &ProcessRecording| chosen.iter().any(|other| other.recording.is_same(process));
        recording.retain(is_it);
        Ok(recording)
    }

    /// Returns how much later than the first process this one began to record.
    fn offset_of(&self, process: &ProcessRecording) -> i64 {
        self.axis.time_ns(process, 0).saturating_sub(self.base)
    }
}

impl RecordingPart {
    /// Returns the requested time range, in nanoseconds since the first process began to record.
    fn range(&self) -> Option<Range<i64>> {
        if self.start.is_none() && self.end.is_none() {
            return None;
        }
        let start = self.start.map_or(i64::MIN, nanoseconds);
        Some(start..self.end.map_or(i64::MAX, nanoseconds).max(start))
    }
}

fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
#[pymethods]
impl OpenedRecording {
    #[new]
    fn new(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        let opened = py.detach(move || Recording::open_all(&paths));
        let recording = opened.map_err(Error::from)?;
        let axis = recording.time_axis();
        let base = recording.processes().iter().map(|process| axis.time_ns(process, 0)).min().unwrap_or(0);
        let processes = recording.processes().iter().map(|process| Arc::new(OpenedProcess::new(process))).collect();
        Ok(Self { recording, processes, axis, base })
    }

    /// Returns the metadata of the recording: its processes, its size, and what is missing.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let processes = PyList::empty(py);
        for process in self.recording.processes() {
            processes.append(info::of_process(py, process)?)?;
        }
        let info = PyDict::new(py);
        info.set_item("processes", processes)?;
        info.set_item("events", self.recording.event_count())?;
        info.set_item("bytes", self.recording.file_bytes())?;
        let end = self.recording.time_range().map_or(self.base, |range| range.end - 1);
        info.set_item("duration", seconds(end.saturating_sub(self.base)))?;
        info.set_item("missing", self.recording.report())?;
        Ok(info)
    }

    /// Returns the events in the order of time.
    fn events(&self, selection: RecordingPart) -> PyResult<PyEvents> {
        let chosen = self.chosen(&selection)?;
        Ok(PyEvents::new(self, chosen, &selection))
    }

    /// Returns the call tree.
    fn tree<'py>(
        &self,
        py: Python<'py>,
        selection: RecordingPart,
        options: profile::ProfileOptions,
    ) -> PyResult<Bound<'py, tree::PyCallTree>> {
        let profile = profile::of(py, self, &selection, &options)?;
        tree::PyCallTree::root(py, profile)
    }

    /// Returns the cost of each function: rows of function, file, line, calls, primitive calls, self and total; and what
    /// is hidden.
    fn top<'py>(
        &self,
        py: Python<'py>,
        selection: RecordingPart,
        options: profile::ProfileOptions,
    ) -> PyResult<(Bound<'py, PyList>, hidden::PyHidden)> {
        let profile = profile::of(py, self, &selection, &options)?;
        Ok((tree::rows(py, &profile)?, hidden::PyHidden::of(&profile)))
    }

    /// Returns the time of phases by function: rows in the order of the fields of `PhaseCost`; and what is hidden.
    fn phases<'py>(
        &self,
        py: Python<'py>,
        selection: RecordingPart,
        options: profile::ProfileOptions,
    ) -> PyResult<(Bound<'py, PyList>, hidden::PyHidden)> {
        let report = timing::report(py, self, &selection, &options)?;
        Ok((timing::phases(py, &report)?, hidden::PyHidden::of_phases(&report)))
    }

    /// Returns the runs: rows in the order of the fields of `Run`.
    fn runs<'py>(
        &self,
        py: Python<'py>,
        selection: RecordingPart,
        options: profile::ProfileOptions,
    ) -> PyResult<Bound<'py, PyList>> {
        timing::runs(py, &timing::report(py, self, &selection, &options)?)
    }

    /// Returns the text of `stackweave phases`.
    fn phases_text(
        &self,
        py: Python<'_>,
        selection: RecordingPart,
        options: profile::ProfileOptions,
        request: timing::PhasesRequest,
    ) -> PyResult<String> {
        timing::text(&timing::report(py, self, &selection, &options)?, &request)
    }

    /// Returns the memory usage by location.
    fn memory<'py>(
        &self,
        py: Python<'py>,
        selection: RecordingPart,
        query: memory::MemoryRequest,
    ) -> PyResult<Bound<'py, PyDict>> {
        memory::usage(py, &memory::select(self, &selection, &query)?)
    }

    /// Returns the memory over time: rows of seconds, resident bytes and live bytes.
    fn memory_timeline(&self, py: Python<'_>, selection: RecordingPart) -> PyResult<Vec<memory::CurvePoint>> {
        memory::timeline(py, &memory::select(self, &selection, &memory::MemoryRequest::default())?)
    }

    /// Returns the memory usage of each device.
    fn memory_devices<'py>(&self, py: Python<'py>, selection: RecordingPart) -> PyResult<Bound<'py, PyList>> {
        memory_devices::devices(py, &memory::select(self, &selection, &memory::MemoryRequest::default())?)
    }

    /// Returns every allocated block, as columns.
    fn memory_history<'py>(
        &self,
        py: Python<'py>,
        selection: RecordingPart,
        query: memory::MemoryRequest,
    ) -> PyResult<Bound<'py, PyDict>> {
        memory_history::columns(py, &memory::select(self, &selection, &query)?)
    }

    /// Returns the stacks of these blocks, as columns.
    fn memory_stacks<'py>(
        &self,
        py: Python<'py>,
        selection: RecordingPart,
        query: memory::MemoryRequest,
    ) -> PyResult<Bound<'py, PyDict>> {
        history_stacks::columns(py, &memory::select(self, &selection, &query)?)
    }

    /// Writes a file in the format of a viewer. Returns a sentence for each thing that is missing in it.
    fn export(
        &self,
        py: Python<'_>,
        selection: RecordingPart,
        options: profile::ProfileOptions,
        request: exporting::ExportRequest,
    ) -> PyResult<Vec<String>> {
        exporting::to_file(py, self, &selection, &options, request)
    }

    /// Returns the marshalled statistics of cProfile.
    fn pstats<'py>(
        &self,
        py: Python<'py>,
        selection: RecordingPart,
        options: profile::ProfileOptions,
    ) -> PyResult<Bound<'py, PyBytes>> {
        exporting::pstats(py, self, &selection, &options)
    }
}

/// Converts a cost: time to seconds, other measures to integers.
fn cost(py: Python<'_>, measure: Measure, cost: i64) -> PyResult<Bound<'_, PyAny>> {
    if measure == Measure::WallTime { seconds(cost).into_bound_py_any(py) } else { cost.into_bound_py_any(py) }
}

/// Gives a type the attribute `self` in place of `own`: `self` is a keyword of Rust, so the getter has another name.
fn own_as_self(type_object: &Bound<'_, PyType>) -> PyResult<()> {
    if type_object.hasattr("own")? {
        type_object.setattr("self", type_object.getattr("own")?)?;
        type_object.delattr("own")?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a double holds some weeks to the nanosecond")]
fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}
