//! What a block of events says before them, never compressed.

use super::error::BlockError;

/// Whose events a block holds, how many, and when. Enough to count them, or to pass them over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventsHead {
    /// The thread.
    pub thread: u32,
    /// How many events.
    pub count: u32,
    /// The least ticks of any of them.
    pub first_ticks: u64,
    /// The greatest ticks of any of them.
    pub last_ticks: u64,
}

impl EventsHead {
    /// How many bytes it takes, at the beginning of what is stored.
    pub const LEN: usize = 24;

    /// Reads one, out of a payload or of what is stored of it.
    pub fn parse(bytes: &[u8]) -> Result<Self, BlockError> {
        let bytes: &[u8; Self::LEN] = bytes.first_chunk().ok_or(BlockError::EndsEarly)?;
        let (head, ticks) = bytes.split_at(8);
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (first, last) = ticks.split_at(8);
        let long = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let head = Self { thread: word(0), count: word(4), first_ticks: long(first), last_ticks: long(last) };
        if head.first_ticks > head.last_ticks || head.last_ticks >> 56 != 0 {
            return Err(BlockError::Contradiction);
        }
        Ok(head)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.thread.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.first_ticks.to_le_bytes());
        out.extend_from_slice(&self.last_ticks.to_le_bytes());
    }
}
