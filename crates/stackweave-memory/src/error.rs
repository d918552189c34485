//! Why memory can't be recorded.

use crate::platform::InterposeError;

/// Why memory can't be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A process has one memory recorder at a time.
    #[error("memory is being recorded already in this process: stop that recording before you start another one")]
    AlreadyRecording,
    /// The recording has no numbers left for kinds of events.
    #[error("the recording has too many kinds of events for a memory recorder")]
    NoKinds,
    /// The functions that take memory can't be hooked.
    #[error("the functions that allocate can't be hooked: {0}")]
    Hooks(#[from] InterposeError),
}
