//! The reason why a walk ended.

use core::fmt;

/// The reason why a stack walk ended where it did. Part of every result: only [`StopReason::EndOfStack`] means that the
/// stack is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum StopReason {
    /// The outermost frame was reached, according to the unwind tables or a null return address.
    EndOfStack,
    /// The address is in no loaded module and no registered code, and frame pointers do not help.
    NoModule,
    /// The module has no unwind entry for the address, and frame pointers do not help.
    NoUnwindEntry,
    /// The unwind tables are malformed, or require an unsupported register or operation.
    UnsupportedRule,
    /// The next frame would be outside the stack, or not above this one.
    BadMemory,
    /// The caller's buffer, or the limit of a walk, is full.
    DepthLimit,
    /// Stackweave cannot capture on this platform.
    UnsupportedPlatform,
}

impl StopReason {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 7] = [
        Self::EndOfStack,
        Self::NoModule,
        Self::NoUnwindEntry,
        Self::UnsupportedRule,
        Self::BadMemory,
        Self::DepthLimit,
        Self::UnsupportedPlatform,
    ];

    /// Returns a short description of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EndOfStack => "end of stack",
            Self::NoModule => "address in no loaded module",
            Self::NoUnwindEntry => "no unwind entry for the address",
            Self::UnsupportedRule => "unsupported or malformed unwind rule",
            Self::BadMemory => "frame outside the stack",
            Self::DepthLimit => "depth limit reached",
            Self::UnsupportedPlatform => "unsupported platform",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
