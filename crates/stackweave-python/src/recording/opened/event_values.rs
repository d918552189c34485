//! The values of an event, as Python has them.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use stackweave_core::{EventKind, FieldType};
use stackweave_recording::clock::Timeline;

use super::seconds;

/// Adds the numbers. Frames and stacks have properties of their own, and so has what is said in words.
pub(super) fn add_words(
    values: &Bound<'_, PyDict>,
    kind: &EventKind,
    words: &[u64],
    (timeline, ticks): (&Timeline, u64),
) -> PyResult<()> {
    for (field, word) in kind.fields.iter().zip(words) {
        let name = &*field.name;
        match field.of {
            FieldType::Stack | FieldType::Frame | FieldType::Bytes | FieldType::Call => {}
            FieldType::Unsigned | FieldType::Address => values.set_item(name, word)?,
            FieldType::Signed => values.set_item(name, word.cast_signed())?,
            FieldType::Float => values.set_item(name, f64::from_bits(*word))?,
            FieldType::Ticks => {
                let before = timeline.nanoseconds(ticks.saturating_sub(*word));
                let length = timeline.nanoseconds(ticks).saturating_sub(before);
                values.set_item(name, seconds(length.cast_signed()))?;
            }
        }
    }
    Ok(())
}

/// What JSON says; the bytes themselves if they are none.
pub(super) fn details<'py>(py: Python<'py>, bytes: Option<&[u8]>) -> PyResult<Bound<'py, PyAny>> {
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return Ok(PyDict::new(py).into_any()) };
    let bytes = PyBytes::new(py, bytes);
    // By a name of ours: the program may have a module of its own that is called json.
    let json = py.import(intern!(py, "stackweave._feeding"))?.getattr(intern!(py, "json"))?;
    let read = json.call_method1(intern!(py, "loads"), (&bytes,));
    Ok(read.unwrap_or_else(|_| bytes.into_any()))
}
