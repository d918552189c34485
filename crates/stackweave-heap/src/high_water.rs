//! The sum over all call sites, and its peak.
//!
//! Hot file: no allocation, no lock.

/// The sum over all call sites, and its peak. Each peak that was left has a number, which shows a call site whether the
/// peak has changed since ([`Account`](crate::account::Account)).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HighWater {
    pub(crate) live_blocks: u64,
    pub(crate) live_bytes: u64,
    pub(crate) peak_blocks: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) peak_ticks: u64,
    /// The number of the peak, if it was left; else that of the previous peak.
    pub(crate) number: u64,
    /// Whether nothing has changed since the peak.
    pub(crate) is_now: bool,
    /// The highest value since the last query.
    pub(crate) recent_bytes: u64,
    pub(crate) recent_ticks: u64,
}

impl HighWater {
    /// Prepares for an increase. Returns whether it makes a new peak.
    #[inline]
    pub(crate) fn will_rise(&mut self, bytes: u64) -> bool {
        let rises = self.live_bytes.wrapping_add(bytes) > self.peak_bytes;
        if !rises {
            self.leave_peak();
        }
        rises
    }

    /// Prepares for a free, or for an allocation that makes no peak.
    #[inline]
    pub(crate) fn leave_peak(&mut self) {
        self.number += u64::from(self.is_now);
        self.is_now = false;
    }

    /// Makes the live memory the peak.
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
