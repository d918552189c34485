//! Why memory can't be recorded.

use std::{error, fmt};

use crate::platform::InterposeError;

/// Why memory can't be recorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum MemoryError {
    /// A process has one memory recorder at a time.
    AlreadyRecording,
    /// The recording has no numbers left for kinds of events.
    NoKinds,
    /// The functions that take memory can't be hooked.
    Hooks(InterposeError),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRecording => f.write_str(
                "memory is being recorded already in this process: stop that recording before you start another one",
            ),
            Self::NoKinds => f.write_str("the recording has too many kinds of events for a memory recorder"),
            Self::Hooks(error) => write!(f, "the functions that allocate can't be hooked: {error}"),
        }
    }
}

impl error::Error for MemoryError {}

impl From<InterposeError> for MemoryError {
    fn from(error: InterposeError) -> Self {
        Self::Hooks(error)
    }
}
