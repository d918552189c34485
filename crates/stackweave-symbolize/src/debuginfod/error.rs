//! Errors of fetching a debug file.

use std::io;
use std::time::Duration;

/// The reason why there is no debug file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DebuginfodError {
    /// No server has the file.
    #[error("no debuginfod server has the file")]
    NotFound,
    /// It did not arrive in this time.
    #[error("no debug file in {0:?}")]
    Late(Duration),
    /// It is larger than this many bytes.
    #[error("debug file larger than {0} bytes")]
    TooLarge(u64),
    /// It ended too early, or is longer than stated.
    #[error("debug file of wrong length")]
    WrongLength,
    /// The data is not an ELF file.
    #[error("malformed debug file: not an ELF file")]
    NotElf,
    /// A server replied with this status.
    #[error("status {0} from debuginfod server")]
    Status(u16),
    /// A server could not be reached, or closed the connection.
    #[error("no connection to debuginfod server: {0}")]
    Connection(String),
    /// The cache could not be written.
    #[error("cannot write debuginfod cache: {0}")]
    Cache(io::ErrorKind),
    /// The crate was built without the feature.
    #[cfg_attr(feature = "debuginfod", expect(dead_code, reason = "only used in builds without the feature"))]
    #[error("no debuginfod support: built without the feature \"debuginfod\"")]
    NotBuilt,
}

impl From<io::Error> for DebuginfodError {
    fn from(error: io::Error) -> Self {
        Self::Cache(error.kind())
    }
}
