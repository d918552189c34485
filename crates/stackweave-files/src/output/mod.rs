//! Creation, replacement and removal of all outputs.
//!
//! A file is written without a name, or with a random name if the file system has no unnamed files. It receives
//! its name when it is complete. It replaces another file only if the caller passes [`Existing::Replace`], and
//! only if that is a regular file. Devices, FIFOs and sockets are written to directly. Only two things are ever
//! removed: a file or folder that this process has created, as its device and inode number prove ([`Created`]),
//! and the listed content of an older export ([`OutputFolder`]).

mod created;
mod draft;
mod file;
mod folder;
mod manifest;
mod numbered_files;
mod output_target;
mod permissions;
mod temporary;
mod unfinished;

pub use created::{Created, remove_file_if};
pub use draft::{Draft, OpenedOutput, Published};
pub use file::{OutputFile, write_file};
pub use folder::OutputFolder;
pub use numbered_files::NumberedFiles;
pub use output_target::is_stream;
pub use temporary::unnamed_scratch;
pub use unfinished::discard_unfinished;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The treatment of a file that already exists at the output's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The file is kept, and the output fails with [`AlreadyExists`](std::io::ErrorKind::AlreadyExists).
    Keep,
    /// The output replaces the file once it is complete.
    Replace,
}

impl Existing {
    /// Returns `Replace` if the user has allowed overwriting.
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
