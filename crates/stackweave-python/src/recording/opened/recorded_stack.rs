//! `PyRecordedStack`: a stack of a recording, whose frames are named at the first access.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use stackweave_core::printable;

use super::named_process::OpenedProcess;
use crate::frame::tuple_of;

/// A stack of a recording.
#[pyclass(frozen, module = "stackweave._native", name = "RecordedStack")]
#[derive(Debug)]
pub(crate) struct PyRecordedStack {
    process: Arc<OpenedProcess>,
    number: u32,
}

impl PyRecordedStack {
    pub(super) fn new(process: &Arc<OpenedProcess>, number: u32) -> Self {
        Self { process: Arc::clone(process), number }
    }
}

#[pymethods]
impl PyRecordedStack {
    /// The frames, innermost first.
    #[getter]
    fn frames<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple_of(py, &self.process.stack(py, self.number)?)
    }

    /// Returns a line for each frame, innermost first.
    fn format(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let frames = self.process.stack(py, self.number)?;
        let line = |frame: &Arc<stackweave_profile::Frame>| {
            let name = frame.qualname.as_ref().unwrap_or(&frame.name);
            let location = frame.filename.as_ref().or(frame.module.as_ref());
            let line = frame.position.line.map(|line| format!(":{line}")).unwrap_or_default();
            location.map_or_else(|| name.to_string(), |location| format!("{name} at {location}{line}"))
        };
        Ok(frames.iter().map(line).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.process.stack(py, self.number)?.len())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let other = other.get();
            other.number == self.number && other.process.recording.is_same(&self.process.recording)
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.number, self.process.recording.start().pid).hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let lines: Vec<String> = self.format(py)?.iter().map(|line| printable(line)).collect();
        Ok(lines.join("\n"))
    }

    fn __repr__(&self) -> String {
        format!("<stackweave.RecordedStack {}>", self.number)
    }
}
