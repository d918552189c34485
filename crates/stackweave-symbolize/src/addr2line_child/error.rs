//! What can go wrong with a child process.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why an addr2line child gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChildError {
    /// There is no such program.
    #[error("no such addr2line program: {0}")]
    NoProgram(PathBuf),
    /// The program could not be started.
    #[error("cannot start {0}: {1}")]
    NotStarted(PathBuf, io::ErrorKind),
    /// There is no such file to resolve addresses of.
    #[error("no such module file: {0}")]
    NoModuleFile(PathBuf),
    /// It ended before it had answered.
    #[error("addr2line child died ({status}){}{complaint}", if .complaint.is_empty() { "" } else { ": " })]
    Died {
        /// How it ended, if that is known.
        status: String,
        /// The beginning of what it wrote to its error output.
        complaint: String,
    },
    /// It took longer than this.
    #[error("addr2line child hung: no answer in {0:?}")]
    Hung(Duration),
    /// It wrote this instead of an answer.
    #[error("addr2line child wrote nonsense: {0:?}")]
    Nonsense(String),
    /// The system refused to talk to it.
    #[error("cannot talk to the addr2line child: {0}")]
    Io(io::ErrorKind),
    /// It is the child of the process that this one was forked from.
    #[error("addr2line child belongs to the process that forked this one")]
    OfAnotherProcess,
}

impl From<io::Error> for ChildError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}
