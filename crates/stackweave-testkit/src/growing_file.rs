//! A file that becomes longer, as one that somebody writes.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::folder::Folder;

/// An empty file in a folder of its own.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    _folder: Folder,
}

impl GrowingFile {
    /// One that nobody else has.
    #[expect(clippy::new_without_default, reason = "it is made on a disk, not of nothing")]
    pub fn new() -> Self {
        let folder = Folder::new();
        Self { path: folder.write("growing.swv", b""), _folder: folder }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds bytes at its end.
    #[expect(clippy::missing_panics_doc, reason = "as for `Folder::new`")]
    pub fn add(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).open(&self.path).expect("the file is there");
        file.write_all(bytes).expect("a file can be written");
    }
}
