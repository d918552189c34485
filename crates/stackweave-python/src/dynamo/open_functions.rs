//! Counts the open calls of each function, so that a recursive call is detected in constant time.
//!
//! The program can change the list of entries. So its length and its last entry are compared with the counted ones before each use,
//! and the functions are counted again if these differ.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::stack_entry::renames;

/// The functions in a list of entries.
pub(super) struct OpenFunctions {
    entries: Vec<OpenEntry>,
    /// The number of open calls of each function.
    counts: Py<PyDict>,
    /// The count of renamed entries at the time of counting.
    renames: u64,
}

/// An entry of the list.
struct OpenEntry {
    object: Py<PyAny>,
    /// Name, file and line.
    function_key: Py<PyTuple>,
    /// The functions from the outermost to this one, created at the first query, and shared by all calls from here.
    stack: Option<Py<PyTuple>>,
}

impl OpenFunctions {
    pub(super) fn new(py: Python<'_>) -> Self {
        Self { entries: Vec::new(), counts: PyDict::new(py).unbind(), renames: renames() }
    }

    /// Counts the functions again if the program has changed the list.
    pub(super) fn synchronize(&mut self, entries: &Bound<'_, PyList>) -> PyResult<()> {
        let is_same = match (self.entries.last(), entries.len().checked_sub(1)) {
            (None, None) => true,
            (Some(entry), Some(last)) => self.entries.len() == last + 1 && entries.get_item(last)?.is(&entry.object),
            _ => false,
        };
        if is_same && self.renames == renames() {
            return Ok(());
        }
        let mut recounted = Self::new(entries.py());
        for entry in entries {
            recounted.enter(&entry, function_key_of(&entry)?)?;
        }
        *self = recounted;
        Ok(())
    }

    /// Adds an entry at the end. Returns whether its function was not open before.
    pub(super) fn enter(&mut self, entry: &Bound<'_, PyAny>, function_key: Bound<'_, PyTuple>) -> PyResult<bool> {
        let counts = self.counts.bind(entry.py());
        let open: u64 = counts.get_item(&function_key)?.map_or(Ok(0), |count| count.extract())?;
        counts.set_item(&function_key, open + 1)?;
        self.entries.push(OpenEntry {
            object: entry.clone().unbind(),
            function_key: function_key.unbind(),
            stack: None,
        });
        Ok(open == 0)
    }

    /// Removes the last entry.
    pub(super) fn leave(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(entry) = self.entries.pop() else { return Ok(()) };
        let (counts, function_key) = (self.counts.bind(py), entry.function_key.bind(py));
        match counts.get_item(function_key)?.map_or(Ok(0), |count| count.extract::<u64>())? {
            0 => Ok(()),
            1 => counts.del_item(function_key),
            open => counts.set_item(function_key, open - 1),
        }
    }

    /// Returns the innermost function.
    pub(super) fn innermost<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTuple>> {
        Some(self.entries.last()?.function_key.bind(py).clone())
    }

    /// Returns all functions, outermost first.
    pub(super) fn stack<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Some(entry) = self.entries.last() else { return Ok(PyTuple::empty(py)) };
        if let Some(stack) = &entry.stack {
            return Ok(stack.bind(py).clone());
        }
        let stack = PyTuple::new(py, self.entries.iter().map(|entry| &entry.function_key))?;
        if let Some(entry) = self.entries.last_mut() {
            entry.stack = Some(stack.clone().unbind());
        }
        Ok(stack)
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.entries.iter().try_for_each(|entry| visit.call(&entry.object))
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}

/// Returns the function of an entry, which may be an instance of torch's class.
fn function_key_of<'py>(entry: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let py = entry.py();
    let name = entry.getattr(intern!(py, "func_name"))?.cast_into::<PyString>()?;
    let file = entry.getattr(intern!(py, "filename"))?.cast_into::<PyString>()?;
    function_key(name, file, entry.getattr(intern!(py, "firstlineno"))?.extract()?)
}

/// Returns a function as torch identifies it: name, file and line.
pub(super) fn function_key<'py>(
    name: Bound<'py, PyString>,
    file: Bound<'py, PyString>,
    line: i64,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = name.py();
    (name, file, line).into_pyobject(py)
}
