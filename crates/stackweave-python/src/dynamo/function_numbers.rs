//! Numbers functions, whose keys only Python can compare.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use stackweave_cli::text::PstatsKey;

/// Functions as `pstats` identifies them: file, line and name.
pub(super) struct FunctionNumbers<'py> {
    numbers: Bound<'py, PyDict>,
    keys: Vec<Bound<'py, PyTuple>>,
}

impl<'py> FunctionNumbers<'py> {
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

    /// Returns the functions as Rust strings.
    pub(super) fn names(&self) -> PyResult<Vec<PstatsKey>> {
        let name = |key: &Bound<'py, PyTuple>| {
            let (file, line, name): (Bound<'_, PyString>, i64, Bound<'_, PyString>) = key.extract()?;
            Ok((file.to_string_lossy().into_owned(), line, name.to_string_lossy().into_owned()))
        };
        self.keys.iter().map(name).collect()
    }
}
