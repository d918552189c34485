//! The recordings in a folder.

use std::io;
use std::path::{Path, PathBuf};

use super::error::OpenError;

/// What the names of recordings end in.
pub const SUFFIX: &str = "swv";

/// How deep folders are followed into.
const MAX_DEPTH: usize = 32;

/// What lies in a folder and below.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The recordings, sorted by path.
    pub(crate) files: Vec<PathBuf>,
    /// Folders that can't be looked into.
    pub(crate) refused: Vec<OpenError>,
}

impl Found {
    /// Links to folders are not followed: they may lead in circles.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, OpenError> {
        let mut found = Self::default();
        found.add(folder, 0).map_err(|error| OpenError::of_io(folder, error))?;
        found.files.sort();
        Ok(found)
    }

    fn add(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                if depth < MAX_DEPTH
                    && let Err(error) = self.add(&path, depth + 1)
                {
                    self.refused.push(OpenError::of_io(&path, error));
                }
            } else if path.extension().is_some_and(|suffix| suffix == SUFFIX) && !path.is_dir() {
                self.files.push(path);
            }
        }
        Ok(())
    }
}
