//! The recordings in a folder.

use std::path::{Path, PathBuf};

use super::error::OpenError;

/// What the names of recordings end in.
pub const SUFFIX: &str = "swv";

/// How deep folders are followed into.
const MAX_DEPTH: usize = 32;

/// Every recording in `folder` and below, sorted by path. Links to folders are not followed: they may lead in circles.
pub(crate) fn recordings_in(folder: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let mut found = Vec::new();
    collect(folder, 0, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), OpenError> {
    let io_error = |error| OpenError::of_io(folder, error);
    for entry in std::fs::read_dir(folder).map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let path = entry.path();
        let is_folder = entry.file_type().map_err(io_error)?.is_dir();
        if is_folder && depth < MAX_DEPTH {
            collect(&path, depth + 1, found)?;
        } else if !is_folder && path.extension().is_some_and(|suffix| suffix == SUFFIX) {
            found.push(path);
        }
    }
    Ok(())
}
