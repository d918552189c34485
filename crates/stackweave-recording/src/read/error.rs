//! The errors of opening and reading recordings, as one sentence each.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a path could not be opened as a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such file or folder.
    #[error("{0}: there is no such file or folder")]
    NotFound(PathBuf),
    /// The permissions do not allow reading it.
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
    /// It is no recording, but looks like this.
    #[error("{0}: this is no recording of Stackweave{guess}", guess = looks_like(*.1))]
    NotARecording(PathBuf, Option<&'static str>),
    /// A later version of Stackweave wrote it.
    #[error("{0}: a newer Stackweave wrote this recording, and this one can't read it; please update")]
    TooNew(PathBuf),
    /// It is a recording, but the block that identifies its process can't be read.
    #[error("{0}: it is a recording that is cut or damaged at its start, so nothing of it can be read")]
    NothingReadable(PathBuf),
    /// It is a folder without recordings.
    #[error("{0}: the folder holds no recordings (files that end in .swv)")]
    NoRecordings(PathBuf),
    /// It is a folder, and none of the recordings in it can be read. `first` is the error of the first one.
    #[error("{path}: {}: {first}", none_of(*.files))]
    NoneReadable {
        /// The folder.
        path: PathBuf,
        /// The number of files.
        files: usize,
        /// The error of the first file.
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

    /// Returns the path that the error is about.
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

/// The reason why reading could not continue: the system failed, not the recording.
#[derive(Debug, thiserror::Error)]
#[error("{path}: it can't be read any more ({error})")]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The error of the system.
    #[source]
    pub error: io::Error,
}

impl ReadError {
    pub(crate) fn new(path: &Path, error: io::Error) -> Self {
        Self { path: path.to_owned(), error }
    }
}
