//! The one place where outputs are created, replaced and discarded.
//!
//! A file is written without a name, or under a random one where the file system has no unnamed files. It gets its name when it is
//! complete. It takes the place of another file only if the caller has said [`Existing::Replace`], and only if that is a regular file.
//! Devices, FIFOs and sockets are written through. Whatever is removed is a file or folder that this process has created, which
//! its device and inode number prove ([`Created`]), or the listed content of an older export ([`OutputFolder`]).

mod created;
mod draft;
mod file;
mod folder;
mod manifest;
mod numbered_files;
mod place;
mod rights;
mod temporary;
mod unfinished;

pub use created::{Created, remove_file_if};
pub use draft::{Draft, Opened, Published};
pub use file::{OutputFile, write_file};
pub use folder::OutputFolder;
pub use numbered_files::NumberedFiles;
pub use place::is_stream;
pub use temporary::unnamed_scratch;
pub use unfinished::discard_unfinished;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What happens to a file that is at the output's path already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the output fails with [`AlreadyExists`](std::io::ErrorKind::AlreadyExists).
    Keep,
    /// The output takes its place once it is complete.
    Replace,
}

impl Existing {
    /// Returns `Replace` if the user has allowed to overwrite.
    pub const fn from_overwrite(overwrite: bool) -> Self {
        if overwrite { Self::Replace } else { Self::Keep }
    }
}

/// Returns `out.swv` for the number 1, and `out-2.swv`, `out-3.swv` for the next ones.
pub fn numbered(path: &Path, number: u32) -> PathBuf {
    if number <= 1 {
        return path.to_owned();
    }
    let mut name: OsString = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod folder_tests;
