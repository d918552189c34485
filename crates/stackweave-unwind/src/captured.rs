//! What a capture returns.

use stackweave_core::StopReason;

/// The result of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// How many frames were written.
    pub len: usize,
    /// Why the walk ended: the stack is whole if this is [`StopReason::EndOfStack`].
    pub stop: StopReason,
}

impl Captured {
    const STOP_SHIFT: u32 = 56;

    /// Both as one word, which the entry stub can return in a register.
    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        self.len as u64 | (self.stop as u64) << Self::STOP_SHIFT
    }

    #[inline(always)]
    pub(crate) fn unpack(word: u64) -> Self {
        let len = (word & ((1 << Self::STOP_SHIFT) - 1)) as usize;
        Self { len, stop: StopReason::ALL[(word >> Self::STOP_SHIFT) as usize % StopReason::ALL.len()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_length_and_reason() {
        for stop in StopReason::ALL {
            let captured = Captured { len: 65_536, stop };
            assert_eq!(Captured::unpack(captured.pack()), captured);
        }
    }
}
