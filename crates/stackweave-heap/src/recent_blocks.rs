//! The last blocks that each thread allocated.
//!
//! Hot file: allocates only for a new thread.

use crate::by_thread::ByThread;

/// The maximum number of addresses per thread.
const MAX_WINDOW: usize = 1024;

/// The last addresses that each thread allocated. Before them is the index of its next address.
#[derive(Debug)]
pub(crate) struct RecentBlocks(ByThread<u64>);

impl RecentBlocks {
    /// Creates a window in which a block is temporary if its thread has allocated at most `temporary` others when it is
    /// freed.
    pub(crate) fn new(temporary: u32) -> Self {
        let window = (temporary as usize).saturating_add(1).min(MAX_WINDOW);
        Self(ByThread::new(1 + window))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an index is below 1,024")]
    pub(crate) fn allocated(&mut self, thread: u32, address: u64) {
        let [next, addresses @ ..] = self.0.of_mut(thread) else { return };
        addresses[*next as usize] = address;
        *next = if *next + 1 == addresses.len() as u64 { 0 } else { *next + 1 };
    }

    /// Returns whether the block at this address is among the last ones that this thread allocated.
    #[inline]
    pub(crate) fn is_recent(&self, thread: u32, address: u64) -> bool {
        self.0.of(thread)[1..].contains(&address)
    }

    pub(crate) fn bytes_used(&self) -> usize {
        self.0.bytes_used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_blocks_of_each_thread_are_recent() {
        let mut recent = RecentBlocks::new(2);
        for address in [16, 32, 48, 64] {
            recent.allocated(3, address);
        }
        assert_eq!([16, 32, 48, 64].map(|address| recent.is_recent(3, address)), [false, true, true, true]);
        assert!(!recent.is_recent(2, 64) && !recent.is_recent(900, 64));
    }

    #[test]
    fn threads_with_large_numbers_need_no_more_memory() {
        let mut recent = RecentBlocks::new(1);
        recent.allocated(u32::MAX, 16);
        assert!(recent.is_recent(u32::MAX - 1, 16) && recent.bytes_used() < 1 << 10);
    }
}
