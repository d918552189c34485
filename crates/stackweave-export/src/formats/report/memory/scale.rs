//! What one block stands for, with the arithmetic of the ledger that recorders and reports count with: the sums are the same.

use stackweave_profile::memory::{MemoryHeader, stands_for};
use stackweave_recording::ProcessRecording;

/// The bits of the fraction of an estimate.
const FRACTION: u32 = 10;
/// A greater block counts as one of this size.
const MOST: u64 = 1 << 50;

/// How blocks are counted: as they are, or as a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scale {
    every: Option<u64>,
}

/// What a block counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    pub(super) blocks: u64,
}

impl Scale {
    pub(super) fn of(process: &ProcessRecording) -> Self {
        let every = MemoryHeader::of(process.start()).and_then(|header| header.sample_every);
        Self { every: every.map(|every| every.clamp(1, MOST)) }
    }

    /// The weight of `part` bytes of a block that had `size`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and far below 2^63")]
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn weight(self, size: u64, part: u64) -> Weight {
        let Some(every) = self.every else { return Weight { bytes: part.min(MOST), blocks: 1 } };
        let size = size.min(MOST);
        let (blocks, bytes) = stands_for(size, every);
        let bytes = if size == 0 { bytes } else { bytes * (part.min(size) as f64 / size as f64) };
        let fixed = |value: f64| (value * f64::from(1 << FRACTION)).round() as u64;
        Weight { bytes: fixed(bytes), blocks: fixed(blocks) }
    }

    /// The whole number that is nearest to a sum of weights.
    pub(super) const fn whole(self, sum: u64) -> u64 {
        match self.every {
            None => sum,
            Some(_) => (sum >> FRACTION) + (sum >> (FRACTION - 1) & 1),
        }
    }
}
