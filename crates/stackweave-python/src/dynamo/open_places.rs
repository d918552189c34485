//! Which functions are open, and how often each: whether a call is a recursion is asked in constant time.
//!
//! The list of entries belongs to whoever holds the profiler's state, and may be changed by them. So what is known of it is
//! compared with its length and its last entry before it is used, and counted anew if these differ.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::entry::renames;

/// The functions of a list of entries.
pub(super) struct OpenPlaces {
    levels: Vec<Level>,
    /// How often each place is open.
    counts: Py<PyDict>,
    /// The renames of entries when these were counted.
    renames: u64,
}

/// One entry of the list.
struct Level {
    entry: Py<PyAny>,
    /// Name, file and line.
    place: Py<PyTuple>,
    /// The places up to this one: made when they are asked for, and shared by all calls from here.
    stack: Option<Py<PyTuple>>,
}

impl OpenPlaces {
    pub(super) fn new(py: Python<'_>) -> Self {
        Self { levels: Vec::new(), counts: PyDict::new(py).unbind(), renames: renames() }
    }

    /// Counts anew if the list was changed by others.
    pub(super) fn follow(&mut self, entries: &Bound<'_, PyList>) -> PyResult<()> {
        let is_same = match (self.levels.last(), entries.len().checked_sub(1)) {
            (None, None) => true,
            (Some(level), Some(last)) => self.levels.len() == last + 1 && entries.get_item(last)?.is(&level.entry),
            _ => false,
        };
        if is_same && self.renames == renames() {
            return Ok(());
        }
        let mut anew = Self::new(entries.py());
        for entry in entries {
            anew.enter(&entry, place_of(&entry)?)?;
        }
        *self = anew;
        Ok(())
    }

    /// Adds an entry at the end. Says whether its function was not open.
    pub(super) fn enter(&mut self, entry: &Bound<'_, PyAny>, place: Bound<'_, PyTuple>) -> PyResult<bool> {
        let counts = self.counts.bind(entry.py());
        let open: u64 = counts.get_item(&place)?.map_or(Ok(0), |count| count.extract())?;
        counts.set_item(&place, open + 1)?;
        self.levels.push(Level { entry: entry.clone().unbind(), place: place.unbind(), stack: None });
        Ok(open == 0)
    }

    /// Takes the last entry away.
    pub(super) fn leave(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(level) = self.levels.pop() else { return Ok(()) };
        let (counts, place) = (self.counts.bind(py), level.place.bind(py));
        match counts.get_item(place)?.map_or(Ok(0), |count| count.extract::<u64>())? {
            0 => Ok(()),
            1 => counts.del_item(place),
            open => counts.set_item(place, open - 1),
        }
    }

    /// The innermost place.
    pub(super) fn innermost<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTuple>> {
        Some(self.levels.last()?.place.bind(py).clone())
    }

    /// All places, outermost first.
    pub(super) fn stack<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Some(level) = self.levels.last() else { return Ok(PyTuple::empty(py)) };
        if let Some(stack) = &level.stack {
            return Ok(stack.bind(py).clone());
        }
        let stack = PyTuple::new(py, self.levels.iter().map(|level| &level.place))?;
        if let Some(level) = self.levels.last_mut() {
            level.stack = Some(stack.clone().unbind());
        }
        Ok(stack)
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.levels.iter().try_for_each(|level| visit.call(&level.entry))
    }

    pub(super) fn clear(&mut self) {
        self.levels.clear();
    }
}

/// The place of an entry, which may be of torch's own class.
fn place_of<'py>(entry: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let py = entry.py();
    let name = entry.getattr(intern!(py, "func_name"))?.cast_into::<PyString>()?;
    let file = entry.getattr(intern!(py, "filename"))?.cast_into::<PyString>()?;
    place(name, file, entry.getattr(intern!(py, "firstlineno"))?.extract()?)
}

/// A place as torch tells it.
pub(super) fn place<'py>(
    name: Bound<'py, PyString>,
    file: Bound<'py, PyString>,
    line: i64,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = name.py();
    (name, file, line).into_pyobject(py)
}
