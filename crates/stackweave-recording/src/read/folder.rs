//! The recordings in a folder.

use std::io;
use std::path::{Path, PathBuf};

use super::error::OpenError;

/// The suffix of recordings' file names.
pub const SUFFIX: &str = "swv";

/// The maximum depth of nested folders.
const MAX_DEPTH: usize = 32;

/// The recordings in a folder and its subfolders.
#[derive(Debug, Default)]
pub(crate) struct FolderContents {
    /// The recordings, sorted by path.
    pub(crate) files: Vec<PathBuf>,
    /// The errors of folders that can't be read.
    pub(crate) refused: Vec<OpenError>,
}

impl FolderContents {
    /// Does not follow links to folders, because they may be circular.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, OpenError> {
        let mut contents = Self::default();
        contents.add(folder, 0).map_err(|error| OpenError::of_io(folder, error))?;
        contents.files.sort();
        Ok(contents)
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
