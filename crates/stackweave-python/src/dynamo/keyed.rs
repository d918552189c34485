//! Values by keys that only Python can compare, in the order in which they came.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

pub(super) struct Keyed<'py, Value> {
    places: Bound<'py, PyDict>,
    rows: Vec<(Bound<'py, PyTuple>, Value)>,
}

impl<'py, Value> Keyed<'py, Value> {
    pub(super) fn new(py: Python<'py>) -> Self {
        Self { places: PyDict::new(py), rows: Vec::new() }
    }

    /// The value of a key, made if it is new.
    pub(super) fn of(&mut self, key: Bound<'py, PyTuple>, new: impl FnOnce() -> Value) -> PyResult<&mut Value> {
        let known = self.places.get_item(&key)?.map(|place| place.extract::<usize>()).transpose()?;
        let place = if let Some(place) = known {
            place
        } else {
            self.places.set_item(&key, self.rows.len())?;
            self.rows.push((key, new()));
            self.rows.len() - 1
        };
        Ok(&mut self.rows[place].1)
    }

    pub(super) fn has(&self, key: &Bound<'py, PyTuple>) -> PyResult<bool> {
        self.places.contains(key)
    }

    pub(super) fn rows(&self) -> &[(Bound<'py, PyTuple>, Value)] {
        &self.rows
    }
}
