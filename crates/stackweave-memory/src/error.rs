//! The reason why memory can't be recorded.

use crate::platform::InterposeError;

/// The reason why memory can't be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A process has one memory recorder at a time.
    #[error("memory is being recorded already in this process: stop that recording before you start another one")]
    AlreadyRecording,
    /// The recording has no number left for another kind of event.
    #[error("the recording has too many kinds of events for a memory recorder")]
    NoKinds,
    /// The functions that allocate can't be hooked.
    #[error("the functions that allocate can't be hooked: {0}")]
    Hooks(#[from] InterposeError),
}
