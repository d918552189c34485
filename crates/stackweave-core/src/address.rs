//! Addresses of this process. Their types say what they point at.

use core::fmt;

/// An address in code, in one word.
///
/// Most frames of a stack are known by a *return address*: the instruction after the call, which may
/// already belong to the next line, or even to the next function when the call never returns. The
/// innermost frame of a signal context, and the frame a signal interrupted, are known by the
/// *instruction pointer* itself. A lookup depends on which of the two it is, so the word includes it: its top bit,
/// never set in a user-space address, marks an instruction pointer.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CodeAddress(u64);

impl CodeAddress {
    const EXACT: u64 = 1 << 63;

    /// Creates the address to which a call returns.
    pub const fn return_address(address: u64) -> Self {
        Self(address & !Self::EXACT)
    }

    /// Creates the address of an instruction that is, or was, about to run.
    pub const fn instruction_pointer(address: u64) -> Self {
        Self(address | Self::EXACT)
    }

    /// Returns whether this is an instruction pointer rather than a return address.
    pub const fn is_exact(self) -> bool {
        self.0 & Self::EXACT != 0
    }

    /// Returns the address without its kind.
    pub const fn address(self) -> u64 {
        self.0 & !Self::EXACT
    }

    /// Returns the address to look up in unwind tables, symbols and line tables: inside the call instruction for a
    /// return address, the address itself for an instruction pointer.
    pub const fn lookup(self) -> u64 {
        if self.is_exact() { self.address() } else { self.0.saturating_sub(1) }
    }

    /// Returns the word that carries both the address and its kind.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Converts the result of [`CodeAddress::to_bits`] back.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl fmt::Debug for CodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_exact() { "ip" } else { "ra" };
        write!(f, "{kind}:{:#x}", self.address())
    }
}

/// The stack pointer of a frame: its value when the frame's callee returns or, for the innermost frame of a signal
/// context, at the interrupted instruction.
///
/// A frame owns the stack from its own stack pointer up to that of its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct StackPointer(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_address_is_looked_up_inside_the_call() {
        let address = CodeAddress::return_address(0x7fff_1234_5678);
        assert_eq!(address.lookup(), 0x7fff_1234_5677);
        assert_eq!(address.address(), 0x7fff_1234_5678);
        assert!(!address.is_exact());
    }

    #[test]
    fn an_instruction_pointer_is_looked_up_unchanged() {
        let address = CodeAddress::instruction_pointer(0x7fff_1234_5678);
        assert_eq!(address.lookup(), 0x7fff_1234_5678);
        assert_eq!(address.address(), 0x7fff_1234_5678);
        assert!(address.is_exact());
        assert_eq!(CodeAddress::from_bits(address.to_bits()), address);
    }

    #[test]
    fn a_null_return_address_has_a_lookup() {
        assert_eq!(CodeAddress::return_address(0).lookup(), 0);
    }

    #[test]
    fn addresses_are_one_word_each() {
        assert_eq!(size_of::<CodeAddress>(), 8);
        assert_eq!(size_of::<StackPointer>(), 8);
    }
}
