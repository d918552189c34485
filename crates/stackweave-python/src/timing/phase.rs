//! `Phase`: something that takes time, for a with statement or as a decorator.

use pyo3::exceptions::{PyGeneratorExit, PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use stackweave_core::RawFrame;
use stackweave_recording::timing::Outcome;

use super::arguments::More;
use super::entries::{Entries, Entry};
use super::feeding::{admitted, outcome_of};
use crate::recording::{Detail, Feed, What, cut_spans, details_of, open_span_count};

/// Of what an exception says, in characters.
const LONGEST: usize = 1000;

/// How it begins.
#[derive(Debug)]
pub(super) enum How {
    Phase(More),
    /// With a row of its own, and these attributes as JSON.
    Run(Vec<u8>),
}

/// A phase. Made by Timing.frame() and Timing.run().
///
/// In a with statement it begins and ends with the block. As a decorator it does so with each call, and with each step of a
/// generator, a coroutine or an asynchronous generator: between its steps others run.
#[pyclass(frozen, module = "stackweave")]
pub(crate) struct Phase {
    feed: Py<Feed>,
    frame: RawFrame,
    how: How,
    open: Entries,
}

impl Phase {
    pub(super) fn new(feed: Py<Feed>, frame: RawFrame, how: How) -> Self {
        Self { feed, frame, how, open: Entries::default() }
    }

    fn begin(&self) -> PyResult<Entry> {
        let feed = self.feed.get();
        let spans = open_span_count(feed);
        let Some(state) = admitted(feed, What::Begins)? else { return Ok(Entry::new(None, spans)) };
        let token = match &self.how {
            How::Phase(more) => state.begin(self.frame, more)?,
            How::Run(json) => state.begin_run(self.frame, json)?,
        };
        Ok(Entry::new(Some(token), spans))
    }

    /// What the calling thread has entered last is left.
    fn finish(&self, py: Python<'_>, outcome: Outcome, error: Option<String>) -> PyResult<()> {
        let feed = self.feed.get();
        let Some(Entry { begun, spans, notes, .. }) = self.open.take() else { return Ok(()) };
        cut_spans(feed, spans);
        let (Some(token), Some(state)) = (begun, feed.timing()) else { return Ok(()) };
        if feed.mode().takes_ends() {
            let json = said(py, notes.map(|notes| notes.into_bound(py)), error)?;
            state.close(token, outcome, &json)?;
        }
        Ok(())
    }
}

#[pymethods]
impl Phase {
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
        self.finish(py, Outcome::Failed, Some(sentence(kind, error)))
    }

    /// Adds to what is told about it at its end.
    #[pyo3(signature = (**attributes))]
    fn note(&self, py: Python<'_>, attributes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        match (attributes, self.open.notes(py)) {
            (Some(attributes), Some(notes)) => notes.bind(py).update(attributes.as_mapping()),
            _ => Ok(()),
        }
    }

    /// Ends it, where that is no matter of a with statement.
    #[pyo3(signature = (*, failed = false, **attributes))]
    fn end(&self, py: Python<'_>, failed: bool, attributes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        self.note(py, attributes)?;
        self.finish(py, outcome_of(failed), None)
    }

    fn __call__(slf: &Bound<'_, Self>, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let steps = Bound::new(slf.py(), Steps { phase: slf.clone().unbind() })?;
        let decorate = slf.py().import("stackweave._feeding")?.getattr("decorate")?;
        Ok(decorate.call1((steps, "frame"))?.call1((function,))?.unbind())
    }

    fn __repr__(&self) -> String {
        let name = stackweave_store::locate_label(self.frame).map(|label| label.name).unwrap_or_default();
        format!("<stackweave.Phase {name:?}>")
    }
}

/// A phase around each step of a function. How a generator says that it is done is no failure.
#[pyclass(frozen, module = "stackweave")]
struct Steps {
    phase: Py<Phase>,
}

#[pymethods]
impl Steps {
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

/// The notes and the error as a JSON object, or nothing.
fn said(py: Python<'_>, notes: Option<Bound<'_, PyDict>>, error: Option<String>) -> PyResult<Vec<u8>> {
    let mut details: Vec<Detail<'_>> = notes.map(|notes| notes.iter().collect()).unwrap_or_default();
    if let Some(error) = error {
        details.push((PyString::new(py, "error").into_any(), PyString::new(py, &error).into_any()));
    }
    if details.is_empty() { Ok(Vec::new()) } else { details_of(py, &details) }
}

/// `ValueError: what it says`, without what it says in further lines. Whatever its own code does, nothing is raised.
fn sentence(kind: &Bound<'_, PyAny>, error: &Bound<'_, PyAny>) -> String {
    let name = kind.getattr("__qualname__").map_or_else(|_| "exception".to_owned(), |name| name.to_string());
    let said = error.str().map(|said| said.to_string_lossy().into_owned()).unwrap_or_default();
    let line = match said.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{name}: {line}"),
        None => name,
    };
    line.chars().take(LONGEST).collect()
}
