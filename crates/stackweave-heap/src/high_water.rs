//! When the sum over all places was highest.
//!
//! Hot file: no allocation, no lock.

/// The sum over all places, and its peak. Each peak that is left has a number, so that a place can tell whether it has
/// changed since ([`Account`](crate::account::Account)).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HighWater {
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
    pub(crate) peak_blocks: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) peak_ticks: u64,
    /// The number of the peak, if it was left; else of the one before it.
    pub(crate) number: u64,
    /// Nothing has changed since the peak: it is now.
    pub(crate) is_now: bool,
    /// The highest since the last query.
    pub(crate) recent_bytes: u64,
    pub(crate) recent_ticks: u64,
}

impl HighWater {
    /// Before a place changes: bytes come in, and this makes a new peak, or not.
    #[inline]
    pub(crate) fn will_rise(&mut self, bytes: u64) -> bool {
        let rises = self.live_bytes.wrapping_add(bytes) > self.peak_bytes;
        if !rises {
            self.leave_peak();
        }
        rises
    }

    /// Before a place frees something, or allocates nothing that makes a peak.
    #[inline]
    pub(crate) fn leave_peak(&mut self) {
        self.number += u64::from(self.is_now);
        self.is_now = false;
    }

    /// What is live now is the peak.
    pub(crate) fn restart_peak(&mut self, ticks: u64) {
        (self.peak_blocks, self.peak_bytes, self.peak_ticks) = (self.live_blocks, self.live_bytes, ticks);
        self.is_now = true;
    }

    #[inline]
    pub(crate) fn add(&mut self, ticks: u64, (blocks, bytes): (u64, u64), rises: bool) {
        self.live_blocks = self.live_blocks.wrapping_add(blocks);
        self.live_bytes = self.live_bytes.wrapping_add(bytes);
        if rises {
            self.peak_blocks = self.live_blocks;
            self.peak_bytes = self.live_bytes;
            self.peak_ticks = ticks;
            self.is_now = true;
        }
        if self.live_bytes > self.recent_bytes {
            self.recent_bytes = self.live_bytes;
            self.recent_ticks = ticks;
        }
    }

    #[inline]
    pub(crate) fn subtract(&mut self, (blocks, bytes): (u64, u64)) {
        self.live_blocks = self.live_blocks.wrapping_sub(blocks);
        self.live_bytes = self.live_bytes.wrapping_sub(bytes);
    }
}
