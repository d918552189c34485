//! The last blocks of each thread: which it allocated, and which it freed.
//!
//! Hot file: allocates only for a new thread.

use crate::block_table::Entry;

/// The last free of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Freed {
    #[default]
    Nothing,
    /// A block whose allocation was not recorded.
    Unknown,
    Block {
        entry: Entry,
        was_temporary: bool,
    },
    /// Addresses that it unmapped; the ledger keeps them with the mappings.
    MappedRange,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// The index of its next address.
    next: usize,
    freed_address: u64,
    freed: Freed,
}

/// The maximum number of addresses per thread.
const MAX_WINDOW: usize = 1024;
/// Threads with greater numbers share one record.
const MAX_THREADS: usize = 1 << 20;
/// The maximum number of records that are added at once, unless there are a third as many already. A recorder numbers
/// threads one by one; a file may contain only the last of a million.
const MAX_GROWTH: usize = 1 << 18;

#[derive(Debug)]
pub(crate) struct Recent {
    threads: Vec<Thread>,
    /// The last addresses that each thread allocated, `window` of each.
    addresses: Vec<u64>,
    window: usize,
}

impl Recent {
    /// Creates a window in which a block is temporary if its thread has allocated at most `temporary` others when it is
    /// freed.
    pub(crate) fn new(temporary: u32) -> Self {
        let window = (temporary as usize).saturating_add(1).min(MAX_WINDOW);
        Self { threads: vec![Thread::default()], addresses: vec![0; window], window }
    }

    /// Returns the index of a thread; threads for which no memory could be allocated share the first.
    #[inline]
    fn at(&mut self, thread: u32) -> usize {
        let at = (thread as usize).min(MAX_THREADS);
        if at < self.threads.len() { at } else { self.add(at) }
    }

    #[cold]
    fn add(&mut self, at: usize) -> usize {
        let (threads, addresses) = (at + 1, (at + 1) * self.window);
        if addresses > MAX_GROWTH.max(self.addresses.len().saturating_mul(4)) {
            return 0;
        }
        let has_room = self.threads.try_reserve(threads - self.threads.len()).is_ok()
            && self.addresses.try_reserve(addresses - self.addresses.len()).is_ok();
        if !has_room {
            return 0;
        }
        self.threads.resize(threads, Thread::default());
        self.addresses.resize(addresses, 0);
        at
    }

    #[inline]
    pub(crate) fn allocated(&mut self, thread: u32, address: u64) {
        let at = self.at(thread);
        let next = &mut self.threads[at].next;
        self.addresses[at * self.window + *next] = address;
        *next = if *next + 1 == self.window { 0 } else { *next + 1 };
    }

    /// Returns whether the block at this address is among the last ones that this thread allocated.
    #[inline]
    pub(crate) fn is_recent(&self, thread: u32, address: u64) -> bool {
        let at = (thread as usize).min(MAX_THREADS);
        let first = if at < self.threads.len() { at * self.window } else { 0 };
        self.addresses.get(first..first + self.window).is_some_and(|window| window.contains(&address))
    }

    #[inline]
    pub(crate) fn freed(&mut self, thread: u32, address: u64, freed: Freed) {
        let at = self.at(thread);
        self.threads[at].freed = freed;
        self.threads[at].freed_address = address;
    }

    /// Removes and returns the last free of the thread, if it was at this address.
    pub(crate) fn take_freed(&mut self, thread: u32, address: u64) -> Freed {
        let at = self.at(thread);
        let known = &mut self.threads[at];
        if known.freed_address == address { std::mem::take(&mut known.freed) } else { Freed::Nothing }
    }

    pub(crate) fn bytes_used(&self) -> usize {
        self.threads.capacity() * size_of::<Thread>() + self.addresses.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_blocks_of_each_thread_are_recent() {
        let mut recent = Recent::new(2);
        for address in [16, 32, 48, 64] {
            recent.allocated(3, address);
        }
        assert_eq!([16, 32, 48, 64].map(|address| recent.is_recent(3, address)), [false, true, true, true]);
        assert!(!recent.is_recent(2, 64) && !recent.is_recent(900, 64));
    }

    #[test]
    fn a_free_is_taken_once_and_by_its_address() {
        let mut recent = Recent::new(0);
        recent.freed(5, 16, Freed::Unknown);
        assert_eq!(recent.take_freed(5, 32), Freed::Nothing);
        assert_eq!(recent.take_freed(4, 16), Freed::Nothing);
        assert_eq!((recent.take_freed(5, 16), recent.take_freed(5, 16)), (Freed::Unknown, Freed::Nothing));
    }

    #[test]
    fn threads_with_large_numbers_need_no_more_memory() {
        let mut recent = Recent::new(1);
        recent.allocated(u32::MAX, 16);
        assert!(recent.is_recent(u32::MAX - 1, 16) && recent.bytes_used() < 1 << 10);
    }
}
