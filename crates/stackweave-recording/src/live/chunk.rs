//! A block of memory that a thread fills with events.
//!
//! It is aligned to its size, so the head is found from any position in it. It is mapped from the kernel and populated, because a
//! signal handler may need one.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::lane::Lane;

/// The size of a chunk in bytes, including its head.
pub(super) const CHUNK: usize = 64 * 1024;
const HEAD: usize = 64;
const WORD: usize = size_of::<u64>();
/// The maximum number of event words in a chunk.
pub(super) const CHUNK_WORDS: usize = (CHUNK - HEAD) / WORD;

/// The head of a chunk. Its events follow.
///
/// The plain fields belong to the owner of the chunk: the thread that fills it, then the queue, then the writer.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Chunk {
    /// The next chunk in the pool or in the queue.
    pub(super) next: AtomicPtr<Chunk>,
    /// The next in the list of all chunks of the pool. It does not change once it is set.
    pub(super) older: Cell<*mut Chunk>,
    /// The lane of its events. A thread sets it when it takes the chunk, before the writer can see the chunk.
    pub(super) lane: Cell<*const Lane>,
    /// The index of the chunk in its lane. Set as above.
    pub(super) sequence: Cell<u64>,
    /// The number of event words, once it is full.
    pub(super) words: Cell<usize>,
    /// The writer's: the number of words that it has encoded.
    pub(super) taken: Cell<usize>,
    /// The writer's: the number of words that its observer has received.
    pub(super) observed: Cell<usize>,
}

const _: () = assert!(size_of::<Chunk>() == HEAD);

impl Chunk {
    /// Maps a new chunk; returns null if the kernel has no memory. Async-signal-safe.
    pub(super) fn map() -> *mut Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: maps new memory of twice the size, which contains an aligned chunk.
        let start = unsafe { libc::mmap(ptr::null_mut(), 2 * CHUNK, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let before = start.addr().next_multiple_of(CHUNK) - start.addr();
        // SAFETY: unmaps the parts before and after the aligned chunk, whose addresses no other code has.
        unsafe {
            if before > 0 {
                libc::munmap(start, before);
            }
            libc::munmap(start.byte_add(before + CHUNK), CHUNK - before);
        }
        let chunk = start.wrapping_byte_add(before).cast::<Self>();
        // SAFETY: our own memory. If the kernel does not know the advice, pages are populated at their first write.
        unsafe { libc::madvise(chunk.cast(), CHUNK, libc::MADV_POPULATE_WRITE) };
        chunk
    }

    /// Unmaps a chunk.
    ///
    /// # Safety
    /// It comes from [`Chunk::map`], and is not accessed afterwards.
    pub(super) unsafe fn unmap(chunk: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(chunk.cast(), CHUNK) };
    }

    /// Releases the memory except the page of the head. The chunk stays usable.
    pub(super) fn release_memory(chunk: *mut Self) {
        const PAGE: usize = 4096;
        // SAFETY: the pages after the first belong to this chunk, which is empty.
        unsafe { libc::madvise(chunk.byte_add(PAGE).cast(), CHUNK - PAGE, libc::MADV_DONTNEED) };
    }

    /// Returns the position of its first event.
    pub(super) fn start(chunk: *mut Self) -> usize {
        chunk.expose_provenance() + HEAD
    }

    /// Returns the chunk of a position; the position after its last word is its own, too.
    pub(super) fn of_position(position: usize) -> *mut Self {
        ptr::with_exposed_provenance_mut((position - WORD) & !(CHUNK - 1))
    }

    /// Returns the number of words before a position in it.
    pub(super) fn words_before(&self, position: usize) -> usize {
        (position - ptr::from_ref(self).addr() - HEAD) / WORD
    }

    /// Returns the words from `start` to `end`.
    ///
    /// # Safety
    /// `start` is at most `end`. These words have been written, and are not overwritten while the slice lives.
    pub(super) unsafe fn words(&self, start: usize, end: usize) -> &[u64] {
        let first = ptr::with_exposed_provenance::<u64>(ptr::from_ref(self).expose_provenance() + HEAD);
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(first.add(start), end - start) }
    }
}

/// A queue of full chunks from many threads to the writer. It keeps the order of each thread's chunks.
///
/// Hot: no lock, async-signal-safe.
#[derive(Debug)]
pub(super) struct FullChunks(AtomicPtr<Chunk>);

impl FullChunks {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds a chunk, which then belongs to the queue.
    pub(super) fn push(&self, chunk: *mut Chunk) {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller's chunk until the exchange.
            unsafe { (*chunk).next.store(last, Ordering::Relaxed) };
            match self.0.compare_exchange_weak(last, chunk, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => last = now,
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::SeqCst).is_null()
    }

    /// Removes all chunks, and calls `each` with them, oldest first.
    pub(super) fn take(&self, mut each: impl FnMut(*mut Chunk)) {
        let mut newest = self.0.swap(ptr::null_mut(), Ordering::SeqCst);
        let mut oldest = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: chunks that were removed from the queue belong to the caller.
            let next = unsafe { (*newest).next.swap(oldest, Ordering::Relaxed) };
            oldest = newest;
            newest = next;
        }
        while !oldest.is_null() {
            // SAFETY: as above; the chunk is not accessed after `each` had it.
            let next = unsafe { (*oldest).next.load(Ordering::Relaxed) };
            each(oldest);
            oldest = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_determines_its_chunk() {
        let chunk = Chunk::map();
        assert_eq!(chunk.addr() % CHUNK, 0);
        let start = Chunk::start(chunk);
        for words in [0, 1, CHUNK_WORDS - 1, CHUNK_WORDS] {
            assert_eq!(Chunk::of_position(start + words * WORD), chunk);
            // SAFETY: mapped above.
            assert_eq!(unsafe { &*chunk }.words_before(start + words * WORD), words);
        }
        // SAFETY: no other code has it.
        unsafe { Chunk::unmap(chunk) };
    }

    #[test]
    fn the_queue_keeps_the_order() {
        let queue = FullChunks::new();
        let chunks: Vec<_> = (0..5).map(|_| Chunk::map()).collect();
        for chunk in &chunks {
            queue.push(*chunk);
        }
        let mut taken = Vec::new();
        queue.take(|chunk| taken.push(chunk));
        assert_eq!(taken, chunks);
        queue.take(|_| panic!("nothing is left"));
        // SAFETY: no other code has them.
        chunks.into_iter().for_each(|chunk| unsafe { Chunk::unmap(chunk) });
    }
}
