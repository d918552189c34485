//! The head of an Events block, which is never compressed.

use super::error::BlockError;

/// The thread, number and times of the events in a block: enough to count or skip them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventsHead {
    /// The thread.
    pub thread: u32,
    /// The number of events.
    pub count: u32,
    /// The smallest ticks of any event.
    pub first_ticks: u64,
    /// The largest ticks of any event.
    pub last_ticks: u64,
}

impl EventsHead {
    /// Its length in bytes, at the beginning of the stored payload.
    pub const LEN: usize = 24;

    /// Parses the head of a payload or of a stored payload.
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
