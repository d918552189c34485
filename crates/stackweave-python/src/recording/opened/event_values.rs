//! Converts the values of an event to Python objects.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use stackweave_core::{EventKind, FieldType};
use stackweave_recording::clock::ClockTimeline;

use super::seconds;

/// Adds the numbers of an event. Its frames, stack and details have separate properties.
pub(super) fn add_words(
    values: &Bound<'_, PyDict>,
    kind: &EventKind,
    words: &[u64],
    (timeline, ticks): (&ClockTimeline, u64),
) -> PyResult<()> {
    for (field, word) in kind.fields.iter().zip(words) {
        let name = &*field.name;
        match field.field_type {
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

/// Parses details as JSON; returns the bytes if they are not JSON.
pub(super) fn details<'py>(py: Python<'py>, bytes: Option<&[u8]>) -> PyResult<Bound<'py, PyAny>> {
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return Ok(PyDict::new(py).into_any()) };
    let bytes = PyBytes::new(py, bytes);
    // Imported through this package, because the program may have its own module named json.
    let json = py.import(intern!(py, "stackweave._recorders.native_callbacks"))?.getattr(intern!(py, "json"))?;
    let read = json.call_method1(intern!(py, "loads"), (&bytes,));
    Ok(read.unwrap_or_else(|_| bytes.into_any()))
}
