//! The memory of a stopped process, cached in blocks: a walk reads words that are close together.

use std::collections::HashMap;

use stackweave_unwind::stepping::ReadMemory;

use crate::memory::RemoteMemory;

/// The size of a block; a power of two.
const BLOCK: u64 = 16 << 10;
const PAGE: u64 = 4 << 10;

/// The memory that was read so far. It is valid only while the process is stopped.
#[derive(Debug)]
pub(crate) struct StoppedMemory {
    memory: RemoteMemory,
    blocks: HashMap<u64, Option<Box<[u8]>>>,
}

impl StoppedMemory {
    pub(crate) fn of(process: u32) -> Self {
        Self { memory: RemoteMemory::of(process), blocks: HashMap::new() }
    }

    /// Returns the block that contains `address`: a large one, or a page if the large one cannot be read
    /// completely.
    fn block(&mut self, address: u64) -> Option<&[u8]> {
        let large = address / BLOCK * BLOCK;
        let whole = self.blocks.entry(large).or_insert_with(|| read(self.memory, large, BLOCK));
        if whole.is_some() {
            return self.blocks.get(&large)?.as_deref();
        }
        // Pages have separate keys: no large block begins at an odd address.
        let page = address / PAGE * PAGE;
        self.blocks.entry(page | 1).or_insert_with(|| read(self.memory, page, PAGE)).as_deref()
    }
}

impl ReadMemory for StoppedMemory {
    fn word(&mut self, address: u64) -> Option<u64> {
        self.code(address).map(u64::from_le_bytes)
    }

    fn code<const N: usize>(&mut self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let mut done = 0;
        while done < N {
            let from = address.checked_add(done as u64)?;
            let block = self.block(from)?;
            let start = usize::try_from(from % block.len() as u64).ok()?;
            let length = (N - done).min(block.len() - start);
            bytes[done..done + length].copy_from_slice(&block[start..start + length]);
            done += length;
        }
        Some(bytes)
    }
}

fn read(memory: RemoteMemory, address: u64, length: u64) -> Option<Box<[u8]>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    memory.read(address, &mut bytes)?;
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maps three pages, of which the last is inaccessible.
    fn pages() -> u64 {
        let length = 3 * usize::try_from(PAGE).unwrap();
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at any address.
        let start = unsafe { libc::mmap(core::ptr::null_mut(), length, rights, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let start = start.expose_provenance() as u64;
        for address in (start..start + 2 * PAGE).step_by(8) {
            // SAFETY: inside of the mapping above.
            unsafe { core::ptr::with_exposed_provenance_mut::<u64>(usize::try_from(address).unwrap()).write(address) };
        }
        let last = core::ptr::with_exposed_provenance_mut(usize::try_from(start + 2 * PAGE).unwrap());
        // SAFETY: the last page of the mapping above, which has no other user.
        assert_eq!(unsafe { libc::mprotect(last, usize::try_from(PAGE).unwrap(), libc::PROT_NONE) }, 0);
        start
    }

    #[test]
    fn words_are_read_up_to_the_last_readable_one() {
        let start = pages();
        let mut memory = StoppedMemory::of(std::process::id());
        for address in [start, start + PAGE - 8, start + PAGE, start + 2 * PAGE - 8] {
            assert_eq!(memory.word(address), Some(address));
        }
        assert_eq!(memory.word(start + PAGE - 4), Some(((start + PAGE - 8) >> 32) | ((start + PAGE) << 32)));
        assert_eq!(memory.word(start + 2 * PAGE - 4), None);
        assert_eq!(memory.word(start + 2 * PAGE), None);
        assert_eq!(memory.word(u64::MAX - 3), None);
    }
}
