//! `Frame`: one named frame, as Python sees it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use stackweave_core::{Position, printable};
use stackweave_profile::{Frame, FrameKind};

/// One frame of a stack.
#[pyclass(frozen, module = "stackweave", name = "Frame")]
#[derive(Debug)]
pub(crate) struct PyFrame {
    pub(crate) frame: Arc<Frame>,
}

/// Every frame that Python was given: equal frames are one object.
static GIVEN: Mutex<Option<HashMap<Arc<Frame>, Py<PyFrame>>>> = Mutex::new(None);

/// Only ever locked with the GIL held and for the time of a lookup, so neither a garbage collection nor a fork finds it
/// locked.
fn given() -> MutexGuard<'static, Option<HashMap<Arc<Frame>, Py<PyFrame>>>> {
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The object for a frame.
pub(crate) fn object_of<'py>(py: Python<'py>, frame: &Arc<Frame>) -> PyResult<Bound<'py, PyFrame>> {
    if let Some(object) = given().as_ref().and_then(|given| given.get(frame)) {
        return Ok(object.bind(py).clone());
    }
    // Made without the lock: making an object may start the garbage collector, and that may run anything.
    let made = Bound::new(py, PyFrame { frame: Arc::clone(frame) })?;
    let mut given = given();
    let kept = given.get_or_insert_default().entry(Arc::clone(frame)).or_insert_with(|| made.clone().unbind());
    Ok(kept.bind(py).clone())
}

/// The frames of a stack as a tuple.
pub(crate) fn tuple_of<'py>(py: Python<'py>, frames: &[Arc<Frame>]) -> PyResult<Bound<'py, PyTuple>> {
    let objects: Vec<_> = frames.iter().map(|frame| object_of(py, frame)).collect::<PyResult<_>>()?;
    PyTuple::new(py, objects)
}

#[pymethods]
impl PyFrame {
    /// The function. One that has no name is known by its place, as libfoo.so+0x1234.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, &self.frame.name)
    }

    /// The function with the classes and functions around it.
    #[getter]
    fn qualname<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.frame.qualname.as_ref().map(|name| PyString::intern(py, name))
    }

    /// The source file.
    #[getter]
    fn filename<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.frame.filename.as_ref().map(|name| PyString::intern(py, name))
    }

    /// The line, from 1.
    #[getter]
    fn line(&self) -> Option<u32> {
        self.frame.position.line
    }

    /// The line that the function begins on. Python code only.
    #[getter]
    fn first_line(&self) -> Option<u32> {
        self.frame.first_line
    }

    /// The column: UTF-8 bytes from 0 in Python code, from 1 in native code.
    #[getter]
    fn column(&self) -> Option<u32> {
        self.frame.position.column
    }

    /// The line that the expression ends on. Python code only.
    #[getter]
    fn end_line(&self) -> Option<u32> {
        self.frame.position.end_line
    }

    /// The column that the expression ends before. Python code only.
    #[getter]
    fn end_column(&self) -> Option<u32> {
        self.frame.position.end_column
    }

    /// "python", "native", "script" for another interpreter, "extra" for what generated code was made from, or "label" for a
    /// name that somebody gave to what was recorded.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, self.frame.kind.as_str())
    }

    /// The file name of the library or program that holds native code.
    #[getter]
    fn module<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.frame.module.as_ref().map(|name| PyString::intern(py, name))
    }

    /// Whether the compiler put this function into the next frame's.
    #[getter]
    fn inlined(&self) -> bool {
        self.frame.is_inlined
    }

    /// The address of native code that was captured.
    #[getter]
    fn address(&self) -> Option<u64> {
        self.frame.address
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().frame == self.frame)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.frame.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let Frame { kind, name, filename, position, module, .. } = &*self.frame;
        let line = position.line.map(|line| format!(":{line}")).unwrap_or_default();
        let place = filename.as_ref().map(|filename| format!(" at {filename}{line}")).unwrap_or_default();
        let module = module.as_ref().map(|module| format!(" in {module}")).unwrap_or_default();
        printable(&format!("<stackweave.Frame {kind} {name}{place}{module}>"))
    }

    fn __copy__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Names<'py>, Numbers))> {
        let rebuild = py.import("stackweave._native")?.getattr("_rebuild_frame")?;
        let names = (self.kind(py), self.name(py), self.qualname(py), self.filename(py), self.module(py));
        let Position { line, end_line, column, end_column } = self.frame.position;
        let Frame { first_line, is_inlined, address, .. } = *self.frame;
        Ok((rebuild, (names, (line, end_line, column, end_column, first_line, is_inlined, address))))
    }
}

type Text<'py> = Bound<'py, PyString>;
/// Kind, name, qualname, filename, module.
type Names<'py> = (Text<'py>, Text<'py>, Option<Text<'py>>, Option<Text<'py>>, Option<Text<'py>>);
/// Line, end line, column, end column, first line, inlined, address.
type Numbers = (Option<u32>, Option<u32>, Option<u32>, Option<u32>, Option<u32>, bool, Option<u64>);
type OwnedNames = (String, String, Option<String>, Option<String>, Option<String>);

/// A frame out of a pickle.
#[pyfunction]
#[pyo3(name = "_rebuild_frame")]
pub(crate) fn rebuild_frame(names: OwnedNames, numbers: Numbers) -> PyResult<PyFrame> {
    let (kind, name, qualname, filename, module) = names;
    let (line, end_line, column, end_column, first_line, is_inlined, address) = numbers;
    let kind = FrameKind::from_name(&kind)
        .ok_or_else(|| PyValueError::new_err("a frame of an unknown kind: the pickle is of another version"))?;
    let frame = Frame {
        kind,
        name: name.into(),
        qualname: qualname.map(Into::into),
        filename: filename.map(Into::into),
        first_line,
        position: Position { line, end_line, column, end_column },
        module: module.map(Into::into),
        is_inlined,
        address,
    };
    Ok(PyFrame { frame: Arc::new(frame) })
}
