//! The reasons why Python's allocators can't be recorded.

use crate::unavailable::Unavailable;

/// The reason why no hook was installed. Nothing was changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocatorError {
    /// There is no interpreter, or it lacks a function.
    #[error("Python's allocators can't be recorded in this interpreter: {0}")]
    Python(#[from] Unavailable),
    /// Hooks are installed already: a process has one observer at a time.
    #[error("Python's allocators are recorded already")]
    AlreadyInstalled,
    /// The interpreter is shutting down, or this thread does not hold the GIL.
    #[error("Python's allocators can't be recorded now: the interpreter is not running Python here")]
    NoGil,
    /// A build without the GIL that has no way to stop other threads while its allocators are exchanged.
    #[error(
        "Python's allocators can't be recorded in this free-threaded build: it can't be stopped while they are exchanged"
    )]
    ThreadsRun,
}
