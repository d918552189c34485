//! Locations that Python code returns: (name, filename, line).

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use stackweave_core::{BlobId, Position, SourceLocation};
use stackweave_store::BlobTable;

use crate::keywords::type_name;

/// Reads a location that Python code has returned.
pub(crate) fn location_of(location: &Bound<'_, PyAny>) -> PyResult<SourceLocation> {
    let (name, filename, line): (String, String, Option<u32>) = location
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("a frame is (name, filename, line), not {}", type_name(location))))?;
    let position = Position { line: line.filter(|line| *line > 0), ..Position::default() };
    Ok(SourceLocation { name: name.into(), qualname: None, filename: filename.into(), first_line: None, position })
}

/// Locations as bytes: the line, the length of the name, the name, the filename. They are never freed, so that frames can be named
/// without Python.
static LOCATIONS: BlobTable = BlobTable::new();

/// Returns the number of a location; `None` if there is no memory.
pub(crate) fn intern_location(location: &SourceLocation) -> Option<BlobId> {
    let line = location.position.line.unwrap_or(0).to_le_bytes();
    let name_length = u32::try_from(location.name.len()).ok()?.to_le_bytes();
    LOCATIONS.intern(&[&line, &name_length, location.name.as_bytes(), location.filename.as_bytes()])
}

/// Returns the location with this number.
pub(crate) fn interned_location(id: BlobId) -> Option<SourceLocation> {
    let (name, filename, line) = location_parts(id)?;
    let position = Position { line, ..Position::default() };
    Some(SourceLocation { name: name.into(), qualname: None, filename: filename.into(), first_line: None, position })
}

/// Returns the name, filename and line of the location with this number, without allocating.
pub(crate) fn location_parts(id: BlobId) -> Option<(&'static str, &'static str, Option<u32>)> {
    let (line, rest) = LOCATIONS.get(id)?.split_first_chunk()?;
    let (name_length, rest) = rest.split_first_chunk()?;
    let (name, filename) = rest.split_at_checked(u32::from_le_bytes(*name_length) as usize)?;
    let line = Some(u32::from_le_bytes(*line)).filter(|line| *line > 0);
    Some((str::from_utf8(name).ok()?, str::from_utf8(filename).ok()?, line))
}
