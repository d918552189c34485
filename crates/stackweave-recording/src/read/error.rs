//! Why nothing can be read, in one sentence each.

use std::io;
use std::path::{Path, PathBuf};

/// Why a path could not be opened as a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such file or folder.
    #[error("{0}: there is no such file or folder")]
    NotFound(PathBuf),
    /// It may not be read.
    #[error("{0}: you may not read it (permission denied)")]
    Denied(PathBuf),
    /// The system could not read it.
    #[error("{0}: it can't be read ({1})")]
    Io(PathBuf, #[source] io::Error),
    /// It is neither a file nor a folder.
    #[error("{0}: it is neither a file nor a folder")]
    NotAFile(PathBuf),
    /// It is a file without bytes.
    #[error("{0}: the file is empty, so nothing was recorded to it")]
    Empty(PathBuf),
    /// It is no recording, but seems to be this.
    #[error("{0}: this is no recording of Stackweave{guess}", guess = looks_like(*.1))]
    NotARecording(PathBuf, Option<&'static str>),
    /// A version of Stackweave wrote it that came after this one.
    #[error("{0}: a newer Stackweave wrote this recording, and this one can't read it; please update")]
    TooNew(PathBuf),
    /// It is a recording, but what tells whose it is can't be read.
    #[error("{0}: it is a recording that is cut or damaged at its start, so nothing of it can be read")]
    NothingReadable(PathBuf),
    /// It is a folder, and no recording lies in it.
    #[error("{0}: the folder holds no recordings (files that end in .swv)")]
    NoRecordings(PathBuf),
    /// It is a folder, and none of the files in it that are called recordings can be read: this is the first reason.
    #[error("{path}: {}: {first}", none_of(*.files))]
    NoneReadable {
        /// The folder.
        path: PathBuf,
        /// How many files there are.
        files: usize,
        /// What is wrong with the first.
        #[source]
        first: Box<OpenError>,
    },
    /// No path was given.
    #[error("no recording was named")]
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

fn looks_like(what: Option<&str>) -> String {
    what.map_or_else(String::new, |what| format!(": it looks like {what}"))
}

fn none_of(files: usize) -> String {
    match files {
        1 => "the one recording in this folder can't be read".to_owned(),
        _ => format!("none of the {files} recordings in this folder can be read; the first"),
    }
}

/// Why reading on was not possible: the system failed, not the recording.
#[derive(Debug, thiserror::Error)]
#[error("{path}: it can't be read any more ({error})")]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub error: io::Error,
}

impl ReadError {
    pub(crate) fn new(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), error }
    }
}
