//! A column of numbers, whose memory pyarrow uses without a copy.

use pyo3::prelude::*;

/// The numbers of a column of a table, in the machine's byte order. They never change or move while this object is alive.
#[pyclass(frozen, module = "stackweave._native")]
#[derive(Debug)]
pub(crate) struct Column {
    values: ColumnNumbers,
    length: usize,
    /// A bit for each value, from the lowest: set if there is one. `None` if all are there.
    valid: Option<Vec<u8>>,
}

#[derive(Debug)]
enum ColumnNumbers {
    Words(Vec<u64>),
    Numbers(Vec<u32>),
}

impl Column {
    pub(super) fn words(words: Vec<u64>) -> Self {
        Self { length: words.len(), values: ColumnNumbers::Words(words), valid: None }
    }

    pub(super) fn numbers(numbers: Vec<u32>) -> Self {
        Self { length: numbers.len(), values: ColumnNumbers::Numbers(numbers), valid: None }
    }

    /// Sets which values are there.
    pub(super) fn with_valid(self, is_valid: impl Iterator<Item = bool>) -> Self {
        let mut valid = vec![0; self.length.div_ceil(8)];
        for (index, _) in is_valid.enumerate().take(self.length).filter(|(_, is_valid)| *is_valid) {
            valid[index / 8] |= 1 << (index % 8);
        }
        Self { valid: Some(valid), ..self }
    }

    /// Returns the numbers; 0 is no value.
    pub(super) fn not_zero(numbers: Vec<u32>) -> Self {
        let valid: Vec<bool> = numbers.iter().map(|number| *number != 0).collect();
        Self::numbers(numbers).with_valid(valid.into_iter())
    }
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.length
    }

    /// The address and the bytes of the values.
    #[getter]
    fn values(&self) -> (usize, usize) {
        match &self.values {
            ColumnNumbers::Words(words) => (words.as_ptr().addr(), size_of_val(words.as_slice())),
            ColumnNumbers::Numbers(numbers) => (numbers.as_ptr().addr(), size_of_val(numbers.as_slice())),
        }
    }

    /// The same of the bits that say which values are there. None if all are.
    #[getter]
    fn valid(&self) -> Option<(usize, usize)> {
        self.valid.as_ref().map(|valid| (valid.as_ptr().addr(), valid.len()))
    }
}
