//! The errors of a recording.

use std::io;
use std::path::PathBuf;

/// The reason why a recording could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file could not be created.
    #[error("cannot record to {path}: {}", reason(.error))]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error.
        #[source]
        error: io::Error,
    },
    /// The system refused a resource.
    #[error("cannot start a recording: {0}")]
    System(#[source] io::Error),
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "the file exists already".to_owned(),
        io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
        _ => error.to_string(),
    }
}

/// The reason why a flush or a dump failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// The file could not be written; the text says why.
    #[error("{0}")]
    Write(String),
    /// The recording has stopped.
    #[error("the recording has stopped")]
    Stopped,
    /// Only recordings in ring mode can be dumped.
    #[error("only a recording in ring mode can be dumped")]
    NoRing,
}
