//! The number of blocks and bytes that one block stands for, with the arithmetic of the ledger that recorders and
//! reports use, so that the sums are the same.

use stackweave_profile::memory::{MemoryHeader, stands_for};
use stackweave_recording::ProcessRecording;

/// The number of bits of an estimate's fraction.
const FRACTION: u32 = 10;
/// Larger blocks count as blocks of this size.
const MAX_SIZE: u64 = 1 << 50;

/// The scale of blocks. Sampled blocks stand for several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scale {
    /// The mean number of bytes per sampled block; `None` if every block is recorded.
    every: Option<u64>,
}

/// The bytes and blocks that a block stands for: estimates are fixed-point numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    pub(super) blocks: u64,
}

impl Scale {
    pub(super) fn of(process: &ProcessRecording) -> Self {
        let every = MemoryHeader::of(process.start()).and_then(|header| header.sample_every);
        Self { every: every.map(|every| every.clamp(1, MAX_SIZE)) }
    }

    /// Returns the weight of `part` bytes of a block that had `size` bytes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and far below 2^63")]
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn weight(self, size: u64, part: u64) -> Weight {
        let Some(every) = self.every else { return Weight { bytes: part.min(MAX_SIZE), blocks: 1 } };
        let size = size.min(MAX_SIZE);
        let (blocks, bytes) = stands_for(size, every);
        let bytes = if size == 0 { bytes } else { bytes * (part.min(size) as f64 / size as f64) };
        let fixed = |value: f64| (value * f64::from(1 << FRACTION)).round() as u64;
        Weight { bytes: fixed(bytes), blocks: fixed(blocks) }
    }

    /// Rounds a sum of weights to a whole number.
    pub(super) const fn whole(self, sum: u64) -> u64 {
        match self.every {
            None => sum,
            Some(_) => (sum >> FRACTION) + (sum >> (FRACTION - 1) & 1),
        }
    }
}
