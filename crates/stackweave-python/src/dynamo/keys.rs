//! Functions that only Python can compare, as numbers.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use stackweave_cli::text::TimedPlace;

/// Functions as `pstats` knows them, file, line and name, each at its number.
pub(super) struct Keys<'py> {
    numbers: Bound<'py, PyDict>,
    keys: Vec<Bound<'py, PyTuple>>,
}

impl<'py> Keys<'py> {
    pub(super) fn new(py: Python<'py>) -> Self {
        Self { numbers: PyDict::new(py), keys: Vec::new() }
    }

    /// Returns the number of a function, which is the next one if the function is new.
    pub(super) fn number(
        &mut self,
        file: &Bound<'py, PyString>,
        line: i64,
        name: &Bound<'py, PyString>,
    ) -> PyResult<u32> {
        let key = (file, line, name).into_pyobject(file.py())?;
        if let Some(number) = self.numbers.get_item(&key)? {
            return number.extract();
        }
        let number = u32::try_from(self.keys.len()).map_err(|_| PyOverflowError::new_err("too many functions"))?;
        self.numbers.set_item(&key, number)?;
        self.keys.push(key);
        Ok(number)
    }

    pub(super) fn get(&self, number: u32) -> &Bound<'py, PyTuple> {
        &self.keys[number as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Bound<'py, PyTuple>> {
        self.keys.iter()
    }

    /// Returns the functions in words.
    pub(super) fn places(&self) -> PyResult<Vec<TimedPlace>> {
        let place = |key: &Bound<'py, PyTuple>| {
            let (file, line, name): (Bound<'_, PyString>, i64, Bound<'_, PyString>) = key.extract()?;
            Ok((file.to_string_lossy().into_owned(), line, name.to_string_lossy().into_owned()))
        };
        self.keys.iter().map(place).collect()
    }
}
