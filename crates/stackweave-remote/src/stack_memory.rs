//! Memory of a process that stands still, read in pieces that are kept: a walk asks for words that lie close together.

use std::collections::HashMap;

use stackweave_unwind::stepping::ReadMemory;

use crate::memory::ProcessMemory;

/// How much is read at once; a power of two.
const PIECE: u64 = 16 << 10;
const PAGE: u64 = 4 << 10;

/// What was read so far. Only right while the process stands still.
#[derive(Debug)]
pub(crate) struct StillMemory {
    memory: ProcessMemory,
    pieces: HashMap<u64, Option<Box<[u8]>>>,
}

impl StillMemory {
    pub(crate) fn of(process: u32) -> Self {
        Self { memory: ProcessMemory::of(process), pieces: HashMap::new() }
    }

    /// The piece that holds `address`: a large one, or a page where not all of that can be read.
    fn piece(&mut self, address: u64) -> Option<&[u8]> {
        let large = address / PIECE * PIECE;
        let whole = self.pieces.entry(large).or_insert_with(|| read(self.memory, large, PIECE));
        if whole.is_some() {
            return self.pieces.get(&large)?.as_deref();
        }
        // Pages have keys of their own: no large piece begins at an odd address.
        let page = address / PAGE * PAGE;
        self.pieces.entry(page | 1).or_insert_with(|| read(self.memory, page, PAGE)).as_deref()
    }
}

impl ReadMemory for StillMemory {
    fn word(&mut self, address: u64) -> Option<u64> {
        self.code(address).map(u64::from_le_bytes)
    }

    fn code<const N: usize>(&mut self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let mut done = 0;
        while done < N {
            let from = address.checked_add(done as u64)?;
            let piece = self.piece(from)?;
            let start = usize::try_from(from % piece.len() as u64).ok()?;
            let length = (N - done).min(piece.len() - start);
            bytes[done..done + length].copy_from_slice(&piece[start..start + length]);
            done += length;
        }
        Some(bytes)
    }
}

fn read(memory: ProcessMemory, address: u64, length: u64) -> Option<Box<[u8]>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    memory.read(address, &mut bytes)?;
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three pages, of which the last can't be read.
    fn pages() -> u64 {
        let length = 3 * usize::try_from(PAGE).unwrap();
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, wherever the kernel likes.
        let start = unsafe { libc::mmap(core::ptr::null_mut(), length, rights, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let start = start.expose_provenance() as u64;
        for address in (start..start + 2 * PAGE).step_by(8) {
            // SAFETY: inside of the mapping just made.
            unsafe { core::ptr::with_exposed_provenance_mut::<u64>(usize::try_from(address).unwrap()).write(address) };
        }
        let last = core::ptr::with_exposed_provenance_mut(usize::try_from(start + 2 * PAGE).unwrap());
        // SAFETY: the last page of the mapping just made, which nobody else uses.
        assert_eq!(unsafe { libc::mprotect(last, usize::try_from(PAGE).unwrap(), libc::PROT_NONE) }, 0);
        start
    }

    #[test]
    fn words_are_read_up_to_the_last_that_can_be() {
        let start = pages();
        let mut memory = StillMemory::of(std::process::id());
        for address in [start, start + PAGE - 8, start + PAGE, start + 2 * PAGE - 8] {
            assert_eq!(memory.word(address), Some(address));
        }
        assert_eq!(memory.word(start + PAGE - 4), Some(((start + PAGE - 8) >> 32) | ((start + PAGE) << 32)));
        assert_eq!(memory.word(start + 2 * PAGE - 4), None);
        assert_eq!(memory.word(start + 2 * PAGE), None);
        assert_eq!(memory.word(u64::MAX - 3), None);
    }
}
