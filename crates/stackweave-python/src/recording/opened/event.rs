//! The Python class `PyEvent`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use stackweave_core::{EventKind, FieldType};
use stackweave_recording::TimedEvent;
use stackweave_recording::file::number_of;

use super::event_values;
use super::named_process::OpenedProcess;
use super::seconds;
use crate::frame::{PyFrame, object_of, tuple_of};

/// An event of a recording.
///
/// >>> with stackweave.Recorder("out.swv") as recorder:
/// ...     recorder.instant("ready", size=3)
/// >>> event = next(recorder.recording.events())
/// >>> event.name, event.role, event.details
/// ('ready', 'instant', {'size': 3})
#[pyclass(frozen, module = "stackweave", name = "Event")]
#[derive(Debug)]
pub(crate) struct PyEvent {
    process: Arc<OpenedProcess>,
    time_ns: i64,
    ticks: u64,
    thread: u32,
    kind: u8,
    words: Box<[u64]>,
    bytes: Option<Box<[u8]>>,
}

impl PyEvent {
    pub(super) fn new(process: &Arc<OpenedProcess>, timed: &TimedEvent<'_>, base: i64) -> Self {
        Self {
            process: Arc::clone(process),
            time_ns: timed.time_ns.saturating_sub(base),
            ticks: timed.event.ticks,
            thread: timed.thread,
            kind: timed.event.kind,
            words: timed.event.words.into(),
            bytes: timed.event.bytes.map(Into::into),
        }
    }

    fn event_kind(&self) -> Option<&EventKind> {
        self.process.recording.dictionary().kind(self.kind)
    }

    /// Returns the first value of this type, if it is not 0.
    fn number(&self, of: FieldType) -> Option<u32> {
        let index = self.event_kind()?.position_of(of)?;
        self.words.get(index).map(|word| number_of(*word)).filter(|number| *number != 0)
    }
}

/// The name of the field with the caller's frame.
const CALLER: &str = "caller";

impl PyEvent {
    fn caller_number(&self) -> Option<u32> {
        let fields = &self.event_kind()?.fields;
        let index = fields.iter().position(|field| field.field_type == FieldType::Frame && field.name == CALLER)?;
        self.words.get(index).map(|word| number_of(*word)).filter(|number| *number != 0)
    }
}

#[pymethods]
impl PyEvent {
    /// The time of the event, in seconds since the first process began to record.
    #[getter]
    fn time(&self) -> f64 {
        seconds(self.time_ns)
    }

    /// The time of the event in nanoseconds.
    #[getter]
    fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// The id of the event's process.
    #[getter]
    fn process(&self) -> u32 {
        self.process.recording.start().pid
    }

    /// The kernel's id of the event's thread.
    #[getter]
    fn thread(&self) -> u32 {
        self.process.recording.dictionary().thread(self.thread).map_or(0, |thread| thread.tid)
    }

    /// The name of the event's thread.
    #[getter]
    fn thread_name(&self) -> &str {
        self.process.recording.dictionary().thread(self.thread).map_or("", |thread| &thread.name)
    }

    /// The kind of the event, as its recorder names it.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match self.event_kind() {
            Some(kind) => PyString::intern(py, &kind.name),
            None => PyString::new(py, &format!("kind {}", self.kind)),
        }
    }

    /// The role of the event: "begin", "end", "instant", "counter", "sample", "allocate", "free", "resume", "open", "name", "map",
    /// "unmap", "keep", "tag", "usage", "complete" or "state". None if the kind is missing from the file.
    #[getter]
    fn role(&self) -> Option<&'static str> {
        self.event_kind().map(|kind| kind.role.as_str())
    }

    /// The name of the span, instant or counter. None for events without a name, such as an end.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let Some(number) = self.number(FieldType::Frame) else { return Ok(None) };
        let frame = self.process.frame(py, number)?;
        Ok(frame.map(|frame| PyString::intern(py, &frame.name)))
    }

    /// The frame of the event, with its location if it has one.
    #[getter]
    fn frame<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyFrame>>> {
        let Some(number) = self.number(FieldType::Frame) else { return Ok(None) };
        self.process.frame(py, number)?.map(|frame| object_of(py, &frame)).transpose()
    }

    /// The caller's frame, with the location of the call. None if the event is not a call, or its caller is unknown.
    #[getter]
    fn caller<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyFrame>>> {
        let Some(number) = self.caller_number() else { return Ok(None) };
        self.process.frame(py, number)?.map(|frame| object_of(py, &frame)).transpose()
    }

    /// The numbers of the event by name, such as value, weight, address and size.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        if let Some(kind) = self.event_kind() {
            let timeline = self.process.recording.timeline();
            event_values::add_words(&values, kind, &self.words, (timeline, self.ticks))?;
        }
        Ok(values)
    }

    /// The details of the event.
    #[getter]
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        event_values::details(py, self.bytes.as_deref())
    }

    /// The stack of the event, innermost frame first. Empty if it was not recorded.
    #[getter]
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.number(FieldType::Stack) {
            Some(stack) => tuple_of(py, &self.process.stack(py, stack)?),
            None => Ok(PyTuple::empty(py)),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.name(py)?.map(|name| format!(" {:?}", name.to_string_lossy())).unwrap_or_default();
        let kind = self.role().unwrap_or("unknown");
        Ok(format!("<stackweave.Event {kind}{name} at {:.9} s on thread {}>", self.time(), self.thread()))
    }
}
