//! What can go wrong on the way to a debug file.

use core::fmt;
use std::io;
use std::time::Duration;

/// Why there is no debug file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DebuginfodError {
    /// No server has it.
    NotFound,
    /// It did not come in this time.
    Late(Duration),
    /// It is larger than this many bytes.
    TooLarge(u64),
    /// It ended too early, or is longer than was said.
    WrongLength,
    /// What came is no ELF file.
    NotElf,
    /// A server answered with this status.
    Status(u16),
    /// A server could not be reached, or broke off.
    Connection(String),
    /// The cache could not be written.
    Cache(io::ErrorKind),
    /// The crate was built without the feature.
    #[cfg_attr(feature = "debuginfod", expect(dead_code, reason = "what the twin without the feature answers"))]
    NotBuilt,
}

impl fmt::Display for DebuginfodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no debuginfod server has the file"),
            Self::Late(limit) => write!(f, "no debug file in {limit:?}"),
            Self::TooLarge(limit) => write!(f, "debug file larger than {limit} bytes"),
            Self::WrongLength => f.write_str("debug file of wrong length"),
            Self::NotElf => f.write_str("malformed debug file: not an ELF file"),
            Self::Status(status) => write!(f, "status {status} from debuginfod server"),
            Self::Connection(fault) => write!(f, "no connection to debuginfod server: {fault}"),
            Self::Cache(kind) => write!(f, "cannot write debuginfod cache: {kind}"),
            Self::NotBuilt => f.write_str("no debuginfod support: built without the feature \"debuginfod\""),
        }
    }
}

impl std::error::Error for DebuginfodError {}

impl From<io::Error> for DebuginfodError {
    fn from(error: io::Error) -> Self {
        Self::Cache(error.kind())
    }
}
