//! Why Python's allocators can't be told of.

use core::fmt;

use crate::unavailable::Unavailable;

/// Why no hook was installed. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocatorError {
    /// There is no interpreter, or it lacks a function.
    Python(Unavailable),
    /// Hooks are installed already: there is one observer in a process.
    AlreadyInstalled,
    /// The interpreter shuts down, or this thread does not hold the GIL.
    NoGil,
    /// A build without the GIL that offers no way to stop other threads while its allocators are exchanged.
    ThreadsRun,
}

impl From<Unavailable> for AllocatorError {
    fn from(reason: Unavailable) -> Self {
        Self::Python(reason)
    }
}

impl fmt::Display for AllocatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Python(reason) => write!(f, "Python's allocators can't be recorded in this interpreter: {reason}"),
            Self::AlreadyInstalled => f.write_str("Python's allocators are recorded already"),
            Self::NoGil => {
                f.write_str("Python's allocators can't be recorded now: the interpreter is not running Python here")
            }
            Self::ThreadsRun => f.write_str(
                "Python's allocators can't be recorded in this free-threaded build: it can't be stopped while they are \
                 exchanged",
            ),
        }
    }
}

impl std::error::Error for AllocatorError {}
