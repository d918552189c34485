//! The reason why a walk ended.

words! {
    /// The reason why a stack walk ended where it did. Part of every result: only [`StopReason::EndOfStack`] means that the
    /// stack is complete.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    #[non_exhaustive]
    pub enum StopReason {
        /// The outermost frame was reached, according to the unwind tables or a null return address.
        EndOfStack => "end of stack",
        /// The address is in no loaded module and no registered code, and frame pointers do not help.
        NoModule => "address in no loaded module",
        /// The module has no unwind entry for the address, and frame pointers do not help.
        NoUnwindEntry => "no unwind entry for the address",
        /// The unwind tables are malformed, or require an unsupported register or operation.
        UnsupportedRule => "unsupported or malformed unwind rule",
        /// The next frame would be outside the stack, or not above this one.
        BadMemory => "frame outside the stack",
        /// The caller's buffer, or the limit of a walk, is full.
        DepthLimit => "depth limit reached",
        /// Stackweave cannot capture on this platform.
        UnsupportedPlatform => "unsupported platform",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_indexed_by_discriminant() {
        for (index, reason) in StopReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
