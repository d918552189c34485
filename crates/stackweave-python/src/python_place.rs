//! Frames as Python code gives them: (name, filename, line).

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use stackweave_core::{BlobId, Position, SourceLocation};
use stackweave_store::BlobTable;

use crate::keywords::type_name;

/// A frame that Python code has named.
pub(crate) fn location_of(place: &Bound<'_, PyAny>) -> PyResult<SourceLocation> {
    let (name, filename, line): (String, String, Option<u32>) = place.extract().map_err(|_| {
        PyTypeError::new_err(format!("a frame is (name, filename, line), and not {}", type_name(place)))
    })?;
    let position = Position { line: line.filter(|line| *line > 0), ..Position::default() };
    Ok(SourceLocation { name: name.into(), qualname: None, filename: filename.into(), first_line: None, position })
}

/// Frames as bytes: the line, the length of the name, the name, the filename. Kept for good, so that they can be
/// named without Python.
static PLACES: BlobTable = BlobTable::new();

/// The number of a place; `None` if there is no memory.
pub(crate) fn intern_place(place: &SourceLocation) -> Option<BlobId> {
    let line = place.position.line.unwrap_or(0).to_le_bytes();
    let name_length = u32::try_from(place.name.len()).ok()?.to_le_bytes();
    PLACES.intern(&[&line, &name_length, place.name.as_bytes(), place.filename.as_bytes()])
}

/// The place with this number.
pub(crate) fn interned_place(id: BlobId) -> Option<SourceLocation> {
    let (name, filename, line) = place_words(id)?;
    let position = Position { line, ..Position::default() };
    Some(SourceLocation { name: name.into(), qualname: None, filename: filename.into(), first_line: None, position })
}

/// The same where nothing may be allocated: name, filename, line.
pub(crate) fn place_words(id: BlobId) -> Option<(&'static str, &'static str, Option<u32>)> {
    let (line, rest) = PLACES.get(id)?.split_first_chunk()?;
    let (name_length, rest) = rest.split_first_chunk()?;
    let (name, filename) = rest.split_at_checked(u32::from_le_bytes(*name_length) as usize)?;
    let line = Some(u32::from_le_bytes(*line)).filter(|line| *line > 0);
    Some((str::from_utf8(name).ok()?, str::from_utf8(filename).ok()?, line))
}
