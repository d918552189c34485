//! The number of a stack: a hash of its frames.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::captured::StackMark;
use crate::platform::last_stack::WalkedFrame;

/// The hash of some frames, from the outermost one inward: of their slots and addresses.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(crate) struct FrameHash(u64);

impl FrameHash {
    /// Adds the next frame inward. Each waits for the hash before only for a multiplication.
    #[inline(always)]
    pub(crate) fn and(self, frame: &WalkedFrame) -> Self {
        let address = frame.address.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32);
        let word = frame.sp.wrapping_mul(0xe703_7ed1_a0b4_28db) ^ address;
        Self(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(word ^ word >> 32))
    }

    /// Returns the number of a stack with this hash. Never 0.
    #[inline(always)]
    pub(crate) fn number(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xa076_1d64_78bd_642f);
        ((mixed ^ mixed >> 29) & !StackMark::ONCE).max(1)
    }
}
