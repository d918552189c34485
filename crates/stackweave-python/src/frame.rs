//! `Frame`: the Python class of a named frame.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use stackweave_core::{Position, printable};
use stackweave_profile::{Frame, FrameKind};

/// One frame of a stack.
///
/// >>> frame = stackweave.capture(native=False).frames[0]
/// >>> frame.name, frame.kind
/// ('<module>', 'python')
#[pyclass(frozen, module = "stackweave", name = "Frame")]
#[derive(Debug)]
pub(crate) struct PyFrame {
    pub(crate) frame: Arc<Frame>,
}

/// The object of each frame that was passed to Python, so that equal frames are one object.
static OBJECTS: Mutex<Option<HashMap<Arc<Frame>, Py<PyFrame>>>> = Mutex::new(None);

/// Locks the objects. They are locked only with the GIL held and only during a lookup, so neither a garbage collection nor a
/// fork finds them locked.
fn objects() -> MutexGuard<'static, Option<HashMap<Arc<Frame>, Py<PyFrame>>>> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the object of a frame.
pub(crate) fn object_of<'py>(py: Python<'py>, frame: &Arc<Frame>) -> PyResult<Bound<'py, PyFrame>> {
    if let Some(object) = objects().as_ref().and_then(|objects| objects.get(frame)) {
        return Ok(object.bind(py).clone());
    }
    // Not locked here: creating an object may start the garbage collector, which may run any code.
    let created = Bound::new(py, PyFrame { frame: Arc::clone(frame) })?;
    let mut objects = objects();
    let stored = objects.get_or_insert_default().entry(Arc::clone(frame)).or_insert_with(|| created.clone().unbind());
    Ok(stored.bind(py).clone())
}

/// Returns the frames of a stack as a tuple.
pub(crate) fn tuple_of<'py>(py: Python<'py>, frames: &[Arc<Frame>]) -> PyResult<Bound<'py, PyTuple>> {
    let objects: Vec<_> = frames.iter().map(|frame| object_of(py, frame)).collect::<PyResult<_>>()?;
    PyTuple::new(py, objects)
}

#[pymethods]
impl PyFrame {
    /// The function, or its module and offset, such as libfoo.so+0x1234, if it has no name.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, &self.frame.name)
    }

    /// The function, qualified with its classes and outer functions.
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
    fn lineno(&self) -> Option<u32> {
        self.frame.position.line
    }

    /// The line that the function begins on. Python code only.
    #[getter]
    fn firstlineno(&self) -> Option<u32> {
        self.frame.first_line
    }

    /// The column: in UTF-8 bytes from 0 in Python code, from 1 in native code.
    #[getter]
    fn colno(&self) -> Option<u32> {
        self.frame.position.column
    }

    /// The line that the expression ends on. Python code only.
    #[getter]
    fn end_lineno(&self) -> Option<u32> {
        self.frame.position.end_line
    }

    /// The column that the expression ends before. Python code only.
    #[getter]
    fn end_colno(&self) -> Option<u32> {
        self.frame.position.end_column
    }

    /// "python", "native", "script" for another interpreter, "extra" for the original of generated code, or "span" for a name that
    /// the program gave to an activity.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::intern(py, self.frame.kind.as_str())
    }

    /// The file name of the library or program of native code.
    #[getter]
    fn module<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.frame.module.as_ref().map(|name| PyString::intern(py, name))
    }

    /// Whether the compiler inlined this function into the function of the next frame.
    #[getter]
    fn inlined(&self) -> bool {
        self.frame.is_inlined
    }

    /// The captured address of native code.
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
        let location = filename.as_ref().map(|filename| format!(" at {filename}{line}")).unwrap_or_default();
        let module = module.as_ref().map(|module| format!(" in {module}")).unwrap_or_default();
        printable(&format!("<stackweave.Frame {kind} {name}{location}{module}>"))
    }

    fn __copy__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (NameTexts<'py>, PositionNumbers))> {
        let rebuild = py.import("stackweave._native")?.getattr("_rebuild_frame")?;
        let names = (self.kind(py), self.name(py), self.qualname(py), self.filename(py), self.module(py));
        let Position { line, end_line, column, end_column } = self.frame.position;
        let Frame { first_line, is_inlined, address, .. } = *self.frame;
        Ok((rebuild, (names, (line, end_line, column, end_column, first_line, is_inlined, address))))
    }
}

type Text<'py> = Bound<'py, PyString>;
/// Kind, name, qualname, filename, module.
type NameTexts<'py> = (Text<'py>, Text<'py>, Option<Text<'py>>, Option<Text<'py>>, Option<Text<'py>>);
/// Line, end line, column, end column, first line, inlined, address.
type PositionNumbers = (Option<u32>, Option<u32>, Option<u32>, Option<u32>, Option<u32>, bool, Option<u64>);
type OwnedNames = (String, String, Option<String>, Option<String>, Option<String>);

/// Restores a frame from a pickle.
#[pyfunction]
#[pyo3(name = "_rebuild_frame")]
pub(crate) fn rebuild_frame(names: OwnedNames, numbers: PositionNumbers) -> PyResult<PyFrame> {
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
        is_own: false,
    };
    Ok(PyFrame { frame: Arc::new(frame) })
}
