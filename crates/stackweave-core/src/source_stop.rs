//! The reason why the walk of an interpreter's frames ended.

words! {
    /// The reason why a [`FrameSource`](crate::FrameSource) ended its walk where it did.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u8)]
    #[non_exhaustive]
    pub enum SourceStop {
        /// The outermost frame was reached. Only then the stack is complete.
        #[default]
        EndOfStack => "end of stack",
        /// The buffer is full.
        DepthLimit => "depth limit reached",
        /// A pointer leads to an address where no frame can be.
        BadFrame => "implausible frame pointer",
        /// A signal interrupted the interpreter while it entered or left a frame: there is no complete chain to walk.
        Interrupted => "interrupted between two frames",
        /// This thread has no state of the interpreter.
        NoThreadState => "thread without a Python state",
        /// The interpreter is not initialised, or no longer initialised.
        NotInitialized => "interpreter not initialised",
        /// The interpreter is shutting down, and this thread does not hold its lock: its state may be gone.
        Finalizing => "interpreter is shutting down",
        /// The frames can only be read with the interpreter's lock, which this thread does not hold.
        NoGil => "the GIL is not held",
        /// The table of code objects is full, or the kernel has no memory for it: a frame could not be stored.
        NoMemory => "no memory for a new code object",
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
