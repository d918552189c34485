//! The memory of a process at the time of the first access, page by page.
//!
//! Counts how much is read and processed, so that endless data structures end there.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::memory::RemoteMemory;

/// The source of the pages.
pub(super) trait PageSource {
    /// Fills `into` with the memory at `address`: all of it, or nothing.
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()>;
}

impl PageSource for RemoteMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        Self::read(self, address, into)
    }
}

const PAGE: usize = 4096;
/// A million frames need a tenth of this.
const MAX_PAGES: usize = 1 << 16;
/// The number of bytes that may be read or decoded. Each read counts as [`READ`] additional bytes.
const MAX_WORK: u64 = 1 << 30;
const READ: u64 = 8;

/// Each page is read once, so that reading a stopped process needs few system calls.
pub(super) struct PageSnapshot<'a> {
    memory: &'a dyn PageSource,
    pages: RefCell<HashMap<u64, Option<Box<[u8; PAGE]>>>>,
    work: Cell<u64>,
}

impl<'a> PageSnapshot<'a> {
    pub(super) fn new(memory: &'a dyn PageSource) -> Self {
        Self { memory, pages: RefCell::default(), work: Cell::new(MAX_WORK) }
    }

    /// Creates a snapshot with a smaller limit of work.
    #[cfg(test)]
    pub(super) fn with_work(memory: &'a dyn PageSource, work: u64) -> Self {
        Self { work: Cell::new(work), ..Self::new(memory) }
    }

    /// Fills `into` with the memory at `address`: all of it, or nothing.
    pub(super) fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        self.charge(into.len() as u64 + READ)?;
        address.checked_add(into.len() as u64)?;
        let mut address = address;
        let mut rest = into;
        while !rest.is_empty() {
            let start = usize::try_from(address % PAGE as u64).ok()?;
            let (part, after) = rest.split_at_mut(rest.len().min(PAGE - start));
            self.read_in_page(address - start as u64, start, part)?;
            address = address.wrapping_add(part.len() as u64);
            rest = after;
        }
        Some(())
    }

    fn read_in_page(&self, page: u64, start: usize, into: &mut [u8]) -> Option<()> {
        let mut pages = self.pages.borrow_mut();
        if pages.len() >= MAX_PAGES && !pages.contains_key(&page) {
            return None;
        }
        let bytes = pages.entry(page).or_insert_with(|| {
            let mut bytes = Box::new([0; PAGE]);
            self.memory.read(page, &mut *bytes).map(|()| bytes)
        });
        into.copy_from_slice(bytes.as_ref()?.get(start..start + into.len())?);
        Some(())
    }

    /// Counts work on this number of bytes; `None` if there has been too much.
    pub(super) fn charge(&self, bytes: u64) -> Option<()> {
        self.work.set(self.work.get().checked_sub(bytes)?);
        Some(())
    }

    pub(super) fn word(&self, address: u64, offset: usize) -> Option<u64> {
        self.array(address, offset).map(u64::from_le_bytes)
    }

    pub(super) fn half_word(&self, address: u64, offset: usize) -> Option<u32> {
        self.array(address, offset).map(u32::from_le_bytes)
    }

    fn array<const N: usize>(&self, address: u64, offset: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address.checked_add(offset as u64)?, &mut bytes)?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages of increasing bytes, at 8192.
    struct TwoPages(Cell<usize>);

    impl PageSource for TwoPages {
        fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
            self.0.set(self.0.get() + 1);
            let start = address.checked_sub(8192).filter(|start| start + into.len() as u64 <= 8192)?;
            for (byte, at) in into.iter_mut().zip(start..) {
                *byte = at.to_le_bytes()[0];
            }
            Some(())
        }
    }

    #[test]
    fn pages_are_read_once_and_reads_may_cross_them() {
        let memory = TwoPages(Cell::new(0));
        let snapshot = PageSnapshot::new(&memory);
        for _ in 0..3 {
            assert_eq!(snapshot.word(12_284, 0), Some(0x0302_0100_fffe_fdfc));
            assert_eq!(snapshot.word(16_380, 0), None);
            assert_eq!(snapshot.half_word(16_380, 0), Some(0xfffe_fdfc));
            assert_eq!(snapshot.half_word(4, 8192), Some(0x0706_0504));
            assert_eq!(snapshot.word(u64::MAX - 3, 0), None);
            assert_eq!(snapshot.word(u64::MAX, 9), None);
        }
        assert_eq!(memory.0.get(), 3);
    }

    #[test]
    fn work_is_limited() {
        let memory = TwoPages(Cell::new(0));
        let snapshot = PageSnapshot::new(&memory);
        assert_eq!(snapshot.charge(MAX_WORK - 16), Some(()));
        assert!(snapshot.word(8192, 0).is_some());
        assert!(snapshot.word(8192, 0).is_none());
    }
}
