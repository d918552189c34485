//! Why nothing can be read, in one sentence each.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a path could not be opened as a recording.
#[derive(Debug)]
pub enum OpenError {
    /// There is no such file or folder.
    NotFound(PathBuf),
    /// It may not be read.
    Denied(PathBuf),
    /// The system could not read it.
    Io(PathBuf, io::Error),
    /// It is neither a file nor a folder.
    NotAFile(PathBuf),
    /// It is a file without bytes.
    Empty(PathBuf),
    /// It is no recording, but seems to be this.
    NotARecording(PathBuf, Option<&'static str>),
    /// A version of Stackweave wrote it that came after this one.
    TooNew(PathBuf),
    /// It is a recording, but what tells whose it is can't be read.
    NothingReadable(PathBuf),
    /// It is a folder, and no recording lies in it.
    NoRecordings(PathBuf),
    /// It is a folder, and none of the files in it that are called recordings can be read: this is the first reason.
    NoneReadable {
        /// The folder.
        path: PathBuf,
        /// How many files there are.
        files: usize,
        /// What is wrong with the first.
        first: Box<OpenError>,
    },
    /// No path was given.
    NoPaths,
}

impl OpenError {
    pub(crate) fn of_io(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            io::ErrorKind::PermissionDenied => Self::Denied(path),
            _ => Self::Io(path, error),
        }
    }

    /// The path that it is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::NotFound(path)
            | Self::Denied(path)
            | Self::Io(path, _)
            | Self::NotAFile(path)
            | Self::Empty(path)
            | Self::NotARecording(path, _)
            | Self::TooNew(path)
            | Self::NothingReadable(path)
            | Self::NoRecordings(path)
            | Self::NoneReadable { path, .. } => Some(path),
            Self::NoPaths => None,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
            write!(f, "{}: ", path.display())?;
        }
        match self {
            Self::NotFound(_) => f.write_str("there is no such file or folder"),
            Self::Denied(_) => f.write_str("you may not read it (permission denied)"),
            Self::Io(_, error) => write!(f, "it can't be read ({error})"),
            Self::NotAFile(_) => f.write_str("it is neither a file nor a folder"),
            Self::Empty(_) => f.write_str("the file is empty, so nothing was recorded to it"),
            Self::NotARecording(_, Some(what)) => write!(f, "this is no recording of Stackweave: it looks like {what}"),
            Self::NotARecording(_, None) => f.write_str("this is no recording of Stackweave"),
            Self::TooNew(_) => {
                f.write_str("a newer Stackweave wrote this recording, and this one can't read it; please update")
            }
            Self::NothingReadable(_) => {
                f.write_str("it is a recording that is cut or damaged at its start, so nothing of it can be read")
            }
            Self::NoRecordings(_) => f.write_str("the folder holds no recordings (files that end in .swv)"),
            Self::NoneReadable { files: 1, first, .. } => {
                write!(f, "the one recording in this folder can't be read: {first}")
            }
            Self::NoneReadable { files, first, .. } => {
                write!(f, "none of the {files} recordings in this folder can be read; the first: {first}")
            }
            Self::NoPaths => f.write_str("no recording was named"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            Self::NoneReadable { first, .. } => Some(first),
            _ => None,
        }
    }
}

/// Why reading on was not possible: the system failed, not the recording.
#[derive(Debug)]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub error: io::Error,
}

impl ReadError {
    pub(crate) fn new(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), error }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: it can't be read any more ({})", self.path.display(), self.error)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
