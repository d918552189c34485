//! A file that becomes longer, like one that another process writes.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::folder::Folder;

/// An empty file in its own temporary folder.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    _folder: Folder,
}

impl GrowingFile {
    /// Creates an empty file with a unique path.
    #[expect(clippy::new_without_default, reason = "it is created on a disk, not from nothing")]
    pub fn new() -> Self {
        let folder = Folder::new();
        Self { path: folder.write("growing.swv", b""), _folder: folder }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes to the file.
    #[expect(clippy::missing_panics_doc, reason = "as for `Folder::new`")]
    pub fn add(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).open(&self.path).expect("the file is there");
        file.write_all(bytes).expect("a file can be written");
    }
}
