//! A piece of memory that a thread fills with events.
//!
//! Aligned to its size, so that a position in it leads to its head. Mapped from the kernel, whole and touched, for a signal
//! handler may need one.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::lane::Lane;

/// Bytes of a chunk, with its head.
pub(super) const CHUNK: usize = 64 * 1024;
const HEAD: usize = 64;
const WORD: usize = size_of::<u64>();
/// The most words of events in a chunk.
pub(super) const CHUNK_WORDS: usize = (CHUNK - HEAD) / WORD;

/// The head of a chunk. Its events follow.
///
/// The plain fields belong to whoever has the chunk: the thread that fills it, then the queue, then the writer.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Chunk {
    /// The next one in the pool or in the queue.
    pub(super) next: AtomicPtr<Chunk>,
    /// The next of all that the pool has ever made. Never changes once it is set.
    pub(super) older: Cell<*mut Chunk>,
    /// Whose events it holds. Set when a thread takes it, before the writer can know of that.
    pub(super) lane: Cell<*const Lane>,
    /// Which chunk of its lane it is, from 0. As above.
    pub(super) sequence: Cell<u64>,
    /// The words of events in it, once it is full.
    pub(super) words: Cell<usize>,
    /// The writer's: how many of them it has taken.
    pub(super) taken: Cell<usize>,
    /// The writer's: how many of them its observer knows.
    pub(super) told: Cell<usize>,
}

const _: () = assert!(size_of::<Chunk>() == HEAD);

impl Chunk {
    /// A new one, or null if the kernel has no memory. Async-signal-safe.
    pub(super) fn map() -> *mut Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, twice as much as needed, so that there is an aligned piece in it.
        let start = unsafe { libc::mmap(ptr::null_mut(), 2 * CHUNK, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let before = start.addr().next_multiple_of(CHUNK) - start.addr();
        // SAFETY: cuts off what lies before and behind the aligned piece, which nobody knows of yet.
        unsafe {
            if before > 0 {
                libc::munmap(start, before);
            }
            libc::munmap(start.byte_add(before + CHUNK), CHUNK - before);
        }
        let chunk = start.wrapping_byte_add(before).cast::<Self>();
        // SAFETY: our own memory. Where the kernel does not know the advice, pages come when they are first written to.
        unsafe { libc::madvise(chunk.cast(), CHUNK, libc::MADV_POPULATE_WRITE) };
        chunk
    }

    /// Gives it back to the kernel.
    ///
    /// # Safety
    /// It came from [`Chunk::map`], and nobody will look at it again.
    pub(super) unsafe fn unmap(chunk: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(chunk.cast(), CHUNK) };
    }

    /// Gives back the memory but for the page of the head. It can be used as before.
    pub(super) fn give_back_memory(chunk: *mut Self) {
        const PAGE: usize = 4096;
        // SAFETY: the pages behind the first belong to this chunk, which holds nothing now.
        unsafe { libc::madvise(chunk.byte_add(PAGE).cast(), CHUNK - PAGE, libc::MADV_DONTNEED) };
    }

    /// Where its first event goes.
    pub(super) fn start(chunk: *mut Self) -> usize {
        chunk.expose_provenance() + HEAD
    }

    /// The chunk that a position belongs to; the position behind its last word is still its own.
    pub(super) fn of_position(position: usize) -> *mut Self {
        ptr::with_exposed_provenance_mut((position - WORD) & !(CHUNK - 1))
    }

    /// How many words lie before a position in it.
    pub(super) fn words_before(&self, position: usize) -> usize {
        (position - ptr::from_ref(self).addr() - HEAD) / WORD
    }

    /// The words from the `start`th on, up to `end`.
    ///
    /// # Safety
    /// `start` is not behind `end`. That many words are written, and will not be written again while the slice lives.
    pub(super) unsafe fn words(&self, start: usize, end: usize) -> &[u64] {
        let first = ptr::with_exposed_provenance::<u64>(ptr::from_ref(self).expose_provenance() + HEAD);
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(first.add(start), end - start) }
    }
}

/// Full chunks, on their way from many threads to the writer. Each thread's stay in order.
///
/// Hot: no lock, async-signal-safe.
#[derive(Debug)]
pub(super) struct FullChunks(AtomicPtr<Chunk>);

impl FullChunks {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds one, which belongs to the queue from now on.
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

    /// Takes all, and calls `each` with them, oldest first.
    pub(super) fn take(&self, mut each: impl FnMut(*mut Chunk)) {
        let mut newest = self.0.swap(ptr::null_mut(), Ordering::SeqCst);
        let mut oldest = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the chunks of the queue belong to who took them.
            let next = unsafe { (*newest).next.swap(oldest, Ordering::Relaxed) };
            oldest = newest;
            newest = next;
        }
        while !oldest.is_null() {
            // SAFETY: as above; it is not touched after `each` had it.
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
    fn positions_lead_to_their_chunk() {
        let chunk = Chunk::map();
        assert_eq!(chunk.addr() % CHUNK, 0);
        let start = Chunk::start(chunk);
        for words in [0, 1, CHUNK_WORDS - 1, CHUNK_WORDS] {
            assert_eq!(Chunk::of_position(start + words * WORD), chunk);
            // SAFETY: mapped above.
            assert_eq!(unsafe { &*chunk }.words_before(start + words * WORD), words);
        }
        // SAFETY: nobody has it.
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
        // SAFETY: nobody has them.
        chunks.into_iter().for_each(|chunk| unsafe { Chunk::unmap(chunk) });
    }
}
