//! `PyPhase`: a phase, for a with statement or as a decorator.

use pyo3::exceptions::{PyGeneratorExit, PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use stackweave_core::RawFrame;
use stackweave_recording::timing::Outcome;

use super::arguments::PhaseAttributes;
use super::phase_entries::{PhaseEntries, PhaseEntry};
use super::phase_functions::{admitted, outcome_of};
use crate::recording::{Detail, Feed, SpanEffect, details_of, open_span_count, truncate_spans};

/// The greatest length of an exception's message, in characters.
const MAX_ERROR_LENGTH: usize = 1000;

/// The way in which a phase is recorded.
#[derive(Debug)]
pub(super) enum PhaseKind {
    Phase(PhaseAttributes),
    /// A run, which has its own row in reports, with attributes as JSON.
    Run(Vec<u8>),
}

/// A phase, created by Timing.phase() and Timing.run().
///
/// In a with statement it begins and ends with the block. As a decorator it begins and ends with each call, and with each step of
/// a generator, a coroutine or an asynchronous generator, because other code runs between the steps.
///
/// >>> with stackweave.Timing() as timing, timing.phase("plan") as phase:
/// ...     phase.note(rows=3)
/// >>> [cost.name for cost in timing.recording.phases()]
/// ['plan']
#[pyclass(frozen, module = "stackweave", name = "Phase")]
pub(crate) struct PyPhase {
    feed: Py<Feed>,
    frame: RawFrame,
    kind: PhaseKind,
    open: PhaseEntries,
}

impl PyPhase {
    pub(super) fn new(feed: Py<Feed>, frame: RawFrame, kind: PhaseKind) -> Self {
        Self { feed, frame, kind, open: PhaseEntries::default() }
    }

    fn begin(&self) -> PyResult<PhaseEntry> {
        let feed = self.feed.get();
        let spans = open_span_count(feed);
        let Some(state) = admitted(feed, SpanEffect::Begin)? else { return Ok(PhaseEntry::new(None, spans)) };
        let token = match &self.kind {
            PhaseKind::Phase(attributes) => state.begin(self.frame, attributes)?,
            PhaseKind::Run(json) => state.begin_run(self.frame, json)?,
        };
        Ok(PhaseEntry::new(Some(token), spans))
    }

    /// Leaves the phase that the calling thread has entered last.
    fn finish(&self, py: Python<'_>, outcome: Outcome, error: Option<String>) -> PyResult<()> {
        let feed = self.feed.get();
        let Some(PhaseEntry { token, spans, notes, .. }) = self.open.take() else { return Ok(()) };
        truncate_spans(feed, spans);
        let (Some(token), Some(state)) = (token, feed.timing()) else { return Ok(()) };
        if feed.mode().records_ends() {
            let json = end_attributes(py, notes.map(|notes| notes.into_bound(py)), error)?;
            state.close(token, outcome, &json)?;
        }
        Ok(())
    }
}

#[pymethods]
impl PyPhase {
    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        let entry = slf.begin()?;
        slf.open.add(entry);
        Ok(slf)
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = traceback;
        if kind.is_none() || error.is_instance_of::<PyGeneratorExit>() {
            return self.finish(py, Outcome::Done, None);
        }
        self.finish(py, Outcome::Failed, Some(error_text(kind, error)))
    }

    /// Adds attributes that are recorded at the end of the phase.
    #[pyo3(signature = (**attributes))]
    fn note(&self, py: Python<'_>, attributes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        match (attributes, self.open.notes(py)) {
            (Some(attributes), Some(notes)) => notes.bind(py).update(attributes.as_mapping()),
            _ => Ok(()),
        }
    }

    /// Ends the phase outside a with statement.
    #[pyo3(signature = (*, failed = false, **attributes))]
    fn end(&self, py: Python<'_>, failed: bool, attributes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        self.note(py, attributes)?;
        self.finish(py, outcome_of(failed), None)
    }

    fn __call__(slf: &Bound<'_, Self>, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let steps = Bound::new(slf.py(), PhaseSteps { phase: slf.clone().unbind() })?;
        let decorate = slf.py().import("stackweave._recorders.native_callbacks")?.getattr("decorate")?;
        Ok(decorate.call1((steps, "phase"))?.call1((function,))?.unbind())
    }

    fn __repr__(&self) -> String {
        let name = stackweave_store::locate_label(self.frame).map(|label| label.name).unwrap_or_default();
        format!("<stackweave.Phase {name:?}>")
    }
}

/// Wraps each step of a function in the phase. The exceptions that end a generator are not failures.
#[pyclass(frozen, module = "stackweave")]
struct PhaseSteps {
    phase: Py<PyPhase>,
}

#[pymethods]
impl PhaseSteps {
    fn __enter__(&self) -> PyResult<()> {
        let phase = self.phase.get();
        phase.open.add(phase.begin()?);
        Ok(())
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if error.is_instance_of::<PyStopIteration>() || error.is_instance_of::<PyStopAsyncIteration>() {
            return self.phase.get().finish(py, Outcome::Done, None);
        }
        self.phase.get().__exit__(py, kind, error, traceback)
    }
}

/// Returns the notes and the error as a JSON object, or nothing.
fn end_attributes(py: Python<'_>, notes: Option<Bound<'_, PyDict>>, error: Option<String>) -> PyResult<Vec<u8>> {
    let mut details: Vec<Detail<'_>> = notes.map(|notes| notes.iter().collect()).unwrap_or_default();
    if let Some(error) = error {
        details.push((PyString::new(py, "error").into_any(), PyString::new(py, &error).into_any()));
    }
    if details.is_empty() { Ok(Vec::new()) } else { details_of(py, &details) }
}

/// Returns `ValueError: message`, with only the first line of the message. Exceptions of the error's own code are ignored.
fn error_text(kind: &Bound<'_, PyAny>, error: &Bound<'_, PyAny>) -> String {
    let name = kind.getattr("__qualname__").map_or_else(|_| "exception".to_owned(), |name| name.to_string());
    let message = error.str().map(|message| message.to_string_lossy().into_owned()).unwrap_or_default();
    let line = match message.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{name}: {line}"),
        None => name,
    };
    line.chars().take(MAX_ERROR_LENGTH).collect()
}
