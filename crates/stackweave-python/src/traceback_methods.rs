//! The methods of `Traceback`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{IntoPyObjectExt, intern};
use stackweave_capture::Stop;
use stackweave_core::{SourceStop, StackId, StopReason};

use crate::frame::{PyFrame, tuple_of};
use crate::process_token;
use crate::resolving::resolve;
use crate::traceback_object::{self, Traceback};

const COMPLETE: &str = "end of stack";
const NO_MEMORY: &str = "no memory for a new stack";

impl<'py> Traceback<'py> {
    /// Returns the frames, innermost first. The first call resolves them.
    pub(crate) fn frames(&self) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(frames) = self.known_frames() {
            return Ok(frames);
        }
        let py = self.as_any().py();
        let frames = match self.object().stack {
            Some(stack) => tuple_of(py, &resolve(py, &[stack])?[0])?,
            None => PyTuple::empty(py),
        };
        Ok(self.keep_frames(frames))
    }

    /// Returns why the stack ends.
    pub(crate) fn stop_reason(&self) -> &'static str {
        let object = self.object();
        if object.stack.is_none() && self.known_frames().is_none() {
            return NO_MEMORY;
        }
        object.stop.map_or(COMPLETE, Stop::as_str)
    }

    /// Returns whether two tracebacks have the same stack. Tracebacks of another process are compared by their frames.
    pub(crate) fn is_same(&self, other: &Self) -> PyResult<bool> {
        match (self.object().stack, other.object().stack) {
            (Some(stack), Some(other)) => Ok(stack == other),
            (None, None) => self.frames()?.eq(other.frames()?),
            _ => Ok(false),
        }
    }

    pub(crate) fn hash(&self) -> PyResult<isize> {
        match self.object().stack {
            Some(stack) => Ok(stack.get() as isize),
            None => self.frames()?.hash(),
        }
    }

    /// Calls a function of the Python part of the package with this traceback.
    pub(crate) fn format_with(&self, function: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = self.as_any().py();
        py.import(intern!(py, "stackweave._traceback"))?.call_method1(function, (self.as_any(),))
    }

    pub(crate) fn repr(&self) -> PyResult<String> {
        match self.object().stack {
            Some(stack) => Ok(format!("<stackweave.Traceback of stack {}>", stack.get())),
            None => Ok(format!("<stackweave.Traceback of {} frames>", self.frames()?.len())),
        }
    }

    /// Returns the pickled form: in this process the number of the stack, in another process its frames.
    pub(crate) fn reduce(&self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.as_any().py();
        let rebuild = py.import("stackweave._native")?.getattr("_rebuild_traceback")?;
        let stack = self.object().stack.map(StackId::get);
        let process = stack.map(|_| process_token::token());
        (rebuild, (self.frames()?, self.stop_reason(), stack, process)).into_bound_py_any(py)
    }
}

/// Restores a traceback from a pickle.
#[pyfunction]
#[pyo3(name = "_rebuild_traceback")]
pub(crate) fn rebuild_traceback<'py>(
    frames: Bound<'py, PyTuple>,
    stop_reason: &str,
    stack: Option<u32>,
    process: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    for frame in &frames {
        frame.cast::<PyFrame>()?;
    }
    let stop = stop_named(stop_reason)?;
    let is_this_process = process.is_some_and(|process| process == process_token::token());
    match stack.and_then(StackId::new).filter(|_| is_this_process) {
        Some(stack) => {
            let restored = traceback_object::of_stack(frames.py(), Some(stack), stop)?;
            if let Some(traceback) = Traceback::from_object(&restored) {
                traceback.keep_frames(frames);
            }
            Ok(restored)
        }
        None => traceback_object::of_frames(frames, stop),
    }
}

fn stop_named(reason: &str) -> PyResult<Option<Stop>> {
    if reason == COMPLETE {
        return Ok(None);
    }
    if reason == NO_MEMORY {
        return Ok(Some(Stop::Source(SourceStop::NoMemory)));
    }
    let native = StopReason::ALL.into_iter().map(Stop::Native);
    let sources = SourceStop::ALL.into_iter().map(Stop::Source);
    let stop = native.chain(sources).chain([Stop::Limit]).find(|stop| stop.as_str() == reason);
    match stop {
        Some(stop) => Ok(Some(stop)),
        None => Err(PyValueError::new_err(format!("no stack stops for {reason:?}: the pickle is of another version"))),
    }
}
