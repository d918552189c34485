//! The figures of one call site, or of one size class.
//!
//! The figures at the peak are stored late: at the first change after the peak was left, since until then the live
//! figures are those of the peak. So a new peak costs nothing, even if every allocation is one.
//!
//! Hot file: no allocation, no lock.

use crate::figures::Figures;
use crate::high_water::HighWater;
use crate::sampling::{Scale, Weight};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
    pub(crate) peak_blocks: u64,
    pub(crate) peak_bytes: u64,
    /// The number of the peak that these two figures are of.
    pub(crate) peak: u64,
    pub(crate) temporary: u64,
    pub(crate) temporary_bytes: u64,
}

impl Account {
    /// Stores the figures of a peak that was left meanwhile. Called before each change.
    #[inline]
    pub(crate) fn keep_peak(&mut self, sum: &HighWater) {
        if self.peak != sum.number {
            self.peak = sum.number;
            self.peak_blocks = self.live_blocks;
            self.peak_bytes = self.live_bytes;
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, weight: Weight) {
        self.allocations = self.allocations.wrapping_add(weight.blocks);
        self.bytes = self.bytes.wrapping_add(weight.bytes);
    }

    #[inline]
    pub(crate) fn add(&mut self, (blocks, bytes): (u64, u64)) {
        self.live_blocks = self.live_blocks.wrapping_add(blocks);
        self.live_bytes = self.live_bytes.wrapping_add(bytes);
    }

    #[inline]
    pub(crate) fn subtract(&mut self, (blocks, bytes): (u64, u64)) {
        self.live_blocks = self.live_blocks.wrapping_sub(blocks);
        self.live_bytes = self.live_bytes.wrapping_sub(bytes);
    }

    #[inline]
    pub(crate) fn count_temporary(&mut self, weight: Weight) {
        self.temporary = self.temporary.wrapping_add(weight.blocks);
        self.temporary_bytes = self.temporary_bytes.wrapping_add(weight.bytes);
    }

    pub(crate) fn uncount_temporary(&mut self, weight: Weight) {
        self.temporary = self.temporary.wrapping_sub(weight.blocks);
        self.temporary_bytes = self.temporary_bytes.wrapping_sub(weight.bytes);
    }

    /// Adds the counts of another account, but not its live figures.
    pub(crate) fn add_counts(&mut self, other: &Self) {
        self.allocations = self.allocations.wrapping_add(other.allocations);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.temporary = self.temporary.wrapping_add(other.temporary);
        self.temporary_bytes = self.temporary_bytes.wrapping_add(other.temporary_bytes);
    }

    /// Returns the figures in a ledger with this sum over all accounts.
    pub(crate) fn figures(&self, sum: &HighWater, scale: Scale) -> Figures {
        let is_unchanged = sum.is_now || self.peak != sum.number;
        let (peak_blocks, peak_bytes) =
            if is_unchanged { (self.live_blocks, self.live_bytes) } else { (self.peak_blocks, self.peak_bytes) };
        Figures {
            allocations: scale.whole(self.allocations),
            bytes: scale.whole(self.bytes),
            live_blocks: scale.whole(self.live_blocks),
            live_bytes: scale.whole(self.live_bytes),
            peak_blocks: scale.whole(peak_blocks),
            peak_bytes: scale.whole(peak_bytes),
            temporary: scale.whole(self.temporary),
            temporary_bytes: scale.whole(self.temporary_bytes),
        }
    }
}
