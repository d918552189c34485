//! Errors of the child process.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason why an addr2line child returned no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChildError {
    /// There is no such program.
    #[error("no such addr2line program: {0}")]
    NoProgram(PathBuf),
    /// The program could not be started.
    #[error("cannot start {0}: {1}")]
    NotStarted(PathBuf, io::ErrorKind),
    /// The file whose addresses are resolved does not exist.
    #[error("no such module file: {0}")]
    NoModuleFile(PathBuf),
    /// It ended before its output was complete.
    #[error("addr2line child died ({status}){}{error_output}", if .error_output.is_empty() { "" } else { ": " })]
    Died {
        /// Its exit status, if it is known.
        status: String,
        /// The beginning of its error output.
        error_output: String,
    },
    /// It took longer than this time.
    #[error("addr2line child hung: no answer in {0:?}")]
    Hung(Duration),
    /// Its output contains this invalid line.
    #[error("addr2line child wrote invalid output: {0:?}")]
    InvalidOutput(String),
    /// Communication with it failed.
    #[error("cannot talk to the addr2line child: {0}")]
    Io(io::ErrorKind),
    /// It is the child of the parent process that forked this one.
    #[error("addr2line child belongs to the process that forked this one")]
    OfAnotherProcess,
}

impl From<io::Error> for ChildError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}
