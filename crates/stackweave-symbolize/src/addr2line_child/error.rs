//! What can go wrong with a child process.

use core::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why an addr2line child gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChildError {
    /// There is no such program.
    NoProgram(PathBuf),
    /// The program could not be started.
    NotStarted(PathBuf, io::ErrorKind),
    /// There is no such file to resolve addresses of.
    NoModuleFile(PathBuf),
    /// It ended before it had answered.
    Died {
        /// How it ended, if that is known.
        status: String,
        /// The beginning of what it wrote to its error output.
        complaint: String,
    },
    /// It took longer than this.
    Hung(Duration),
    /// It wrote this instead of an answer.
    Nonsense(String),
    /// The system refused to talk to it.
    Io(io::ErrorKind),
    /// It is the child of the process that this one was forked from.
    OfAnotherProcess,
}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram(program) => write!(f, "no such addr2line program: {}", program.display()),
            Self::NotStarted(program, kind) => write!(f, "cannot start {}: {kind}", program.display()),
            Self::NoModuleFile(file) => write!(f, "no such module file: {}", file.display()),
            Self::Died { status, complaint } if complaint.is_empty() => write!(f, "addr2line child died ({status})"),
            Self::Died { status, complaint } => write!(f, "addr2line child died ({status}): {complaint}"),
            Self::Hung(limit) => write!(f, "addr2line child hung: no answer in {limit:?}"),
            Self::Nonsense(text) => write!(f, "addr2line child wrote nonsense: {text:?}"),
            Self::Io(kind) => write!(f, "cannot talk to the addr2line child: {kind}"),
            Self::OfAnotherProcess => f.write_str("addr2line child belongs to the process that forked this one"),
        }
    }
}

impl std::error::Error for ChildError {}

impl From<io::Error> for ChildError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}
