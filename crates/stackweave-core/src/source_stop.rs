//! The reason why the walk of an interpreter's frames ended.

use core::fmt;

/// The reason why a [`FrameSource`](crate::FrameSource) ended its walk where it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum SourceStop {
    /// The outermost frame was reached. Only then the stack is complete.
    #[default]
    EndOfStack,
    /// The buffer is full.
    DepthLimit,
    /// A pointer leads to an address where no frame can be.
    BadFrame,
    /// A signal interrupted the interpreter while it entered or left a frame: there is no complete chain to walk.
    Interrupted,
    /// This thread has no state of the interpreter.
    NoThreadState,
    /// The interpreter is not initialised, or no longer initialised.
    NotInitialized,
    /// The interpreter is shutting down, and this thread does not hold its lock: its state may be gone.
    Finalizing,
    /// The frames can only be read with the interpreter's lock, which this thread does not hold.
    NoGil,
    /// The table of code objects is full, or the kernel has no memory for it: a frame could not be stored.
    NoMemory,
}

impl SourceStop {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 9] = [
        Self::EndOfStack,
        Self::DepthLimit,
        Self::BadFrame,
        Self::Interrupted,
        Self::NoThreadState,
        Self::NotInitialized,
        Self::Finalizing,
        Self::NoGil,
        Self::NoMemory,
    ];

    /// Returns a short description of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EndOfStack => "end of stack",
            Self::DepthLimit => "depth limit reached",
            Self::BadFrame => "implausible frame pointer",
            Self::Interrupted => "interrupted between two frames",
            Self::NoThreadState => "thread without a Python state",
            Self::NotInitialized => "interpreter not initialised",
            Self::Finalizing => "interpreter is shutting down",
            Self::NoGil => "the GIL is not held",
            Self::NoMemory => "no memory for a new code object",
        }
    }
}

impl fmt::Display for SourceStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_indexed_by_discriminant() {
        for (index, reason) in SourceStop::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
