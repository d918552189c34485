//! The pool of free chunks, and the limit on their number.
//!
//! Hot file: no lock, no allocation; async-signal-safe.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::chunk::{CHUNK, Chunk};
use super::futex;

/// Chunks are aligned to their size, and addresses end below bit 48: a shifted address leaves bits for a count of changes. Without it,
/// a chunk that returned meanwhile would look like one that never left (ABA).
const ADDRESS_SHIFT: u32 = 16;
const COUNT_MASK: u64 = 0xffff_ffff;
/// No thread waits longer without another check: the thread that would wake it may have died.
const WAIT: Duration = Duration::from_millis(50);

/// The reason why there is no chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolError {
    /// The limit is reached.
    Full,
    /// The kernel has no memory.
    NoMemory,
}

/// The chunks of one recording. They stay mapped as long as it lives.
#[derive(Debug)]
pub(super) struct ChunkPool {
    free: AtomicU64,
    newest: AtomicPtr<Chunk>,
    made: AtomicUsize,
    idle: AtomicUsize,
    lanes: AtomicUsize,
    /// The limit on the number of chunks beyond one for each lane.
    spare: usize,
    returned: AtomicU32,
    waiting: AtomicU32,
}

impl ChunkPool {
    /// Returns a pool whose chunks may take this many bytes beyond one chunk for each lane.
    pub(super) const fn new(bytes: usize) -> Self {
        Self {
            free: AtomicU64::new(0),
            newest: AtomicPtr::new(ptr::null_mut()),
            made: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            lanes: AtomicUsize::new(0),
            spare: bytes / CHUNK,
            returned: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
        }
    }

    /// Adds a lane. It may always have a chunk, unless threads that have ended hold more than their share.
    pub(super) fn add_lane(&self) {
        self.lanes.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a lane.
    pub(super) fn forget_lane(&self) {
        self.lanes.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes a chunk for a lane that has none.
    pub(super) fn take(&self) -> Result<*mut Chunk, PoolError> {
        let free = self.pop();
        if !free.is_null() {
            return Ok(free);
        }
        self.make(self.spare + self.lanes.load(Ordering::Relaxed))
    }

    /// Takes a chunk for a lane that must not wait, regardless of the limit.
    pub(super) fn take_beyond(&self) -> Result<*mut Chunk, PoolError> {
        self.take().or_else(|_| self.make(usize::MAX))
    }

    /// Waits for a chunk. Returns after a while without one, so that the caller can decide whether to go on waiting.
    pub(super) fn wait(&self) -> Result<*mut Chunk, PoolError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let before = self.returned.load(Ordering::SeqCst);
        let mut chunk = self.take();
        if chunk.is_err() {
            futex::wait(&self.returned, before, WAIT);
            chunk = self.take();
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        chunk
    }

    /// Puts a chunk back.
    pub(super) fn put(&self, chunk: *mut Chunk) {
        if self.idle.load(Ordering::Relaxed) > self.spare {
            Chunk::release_memory(chunk);
        }
        self.push(chunk);
        self.wake();
    }

    /// Wakes waiting threads, so that they check again.
    pub(super) fn wake(&self) {
        self.returned.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&self.returned);
        }
    }

    /// Releases the memory of all free chunks.
    pub(super) fn release_memory(&self) {
        let mut chunk = self.pop();
        let mut taken: *mut Chunk = ptr::null_mut();
        while !chunk.is_null() {
            Chunk::release_memory(chunk);
            // SAFETY: removed from the list, so only this thread has it.
            unsafe { (*chunk).next.store(taken, Ordering::Relaxed) };
            taken = chunk;
            chunk = self.pop();
        }
        while !taken.is_null() {
            // SAFETY: as above.
            let next = unsafe { (*taken).next.load(Ordering::Relaxed) };
            self.push(taken);
            taken = next;
        }
    }

    /// Returns a number that changes when a chunk is put back.
    pub(super) fn return_count(&self) -> u32 {
        self.returned.load(Ordering::SeqCst)
    }

    /// Returns the size of all chunks in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.made.load(Ordering::Relaxed) * CHUNK
    }

    /// Maps a new chunk, if there are fewer than `limit`.
    fn make(&self, limit: usize) -> Result<*mut Chunk, PoolError> {
        let one_more = |made| (made < limit).then_some(made + 1);
        if self.made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
            return Err(PoolError::Full);
        }
        let chunk = Chunk::map();
        if chunk.is_null() {
            self.made.fetch_sub(1, Ordering::Relaxed);
            return Err(PoolError::NoMemory);
        }
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: no other code has it before the exchange.
            unsafe { (*chunk).older.set(newest) };
            match self.newest.compare_exchange_weak(newest, chunk, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(chunk),
                Err(now) => newest = now,
            }
        }
    }

    fn pop(&self) -> *mut Chunk {
        let mut first = self.free.load(Ordering::Acquire);
        loop {
            let chunk = chunk_of(first);
            if chunk.is_null() {
                return chunk;
            }
            // SAFETY: chunks stay mapped; if another thread has taken it meanwhile, the exchange fails.
            let next = unsafe { (*chunk).next.load(Ordering::Relaxed) };
            match self.free.compare_exchange_weak(first, after(first, next), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    self.idle.fetch_sub(1, Ordering::Relaxed);
                    return chunk;
                }
                Err(now) => first = now,
            }
        }
    }

    fn push(&self, chunk: *mut Chunk) {
        self.idle.fetch_add(1, Ordering::Relaxed);
        let mut first = self.free.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller's chunk until the exchange.
            unsafe { (*chunk).next.store(chunk_of(first), Ordering::Relaxed) };
            match self.free.compare_exchange_weak(first, after(first, chunk), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
}

impl Drop for ChunkPool {
    fn drop(&mut self) {
        let mut chunk = *self.newest.get_mut();
        while !chunk.is_null() {
            // SAFETY: every chunk is in this list once, and the pool is not used any more.
            unsafe {
                let older = (*chunk).older.get();
                Chunk::unmap(chunk);
                chunk = older;
            }
        }
    }
}

fn chunk_of(word: u64) -> *mut Chunk {
    let address = usize::try_from((word & !COUNT_MASK) >> ADDRESS_SHIFT).unwrap_or(0);
    ptr::with_exposed_provenance_mut(address)
}

/// Returns the word that refers to `chunk`, one change after `word`.
fn after(word: u64, chunk: *mut Chunk) -> u64 {
    let address = chunk.expose_provenance() as u64;
    (address << ADDRESS_SHIFT) | (word.wrapping_add(1) & COUNT_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_pool_has_its_limit_and_one_chunk_for_each_lane() {
        let pool = ChunkPool::new(2 * CHUNK);
        pool.add_lane();
        let chunks = [pool.take(), pool.take(), pool.take()];
        assert!(chunks.iter().all(Result::is_ok));
        assert_eq!(pool.take(), Err(PoolError::Full));
        pool.add_lane();
        assert!(pool.take().is_ok(), "a new lane gets one");
        assert_eq!(pool.bytes(), 4 * CHUNK);
        pool.put(chunks[0].unwrap());
        assert_eq!(pool.take(), chunks[0]);
        pool.forget_lane();
        assert_eq!(pool.wait(), Err(PoolError::Full), "chunks of threads that have ended count");
    }

    #[test]
    fn no_chunk_belongs_to_two_threads() {
        let pool = ChunkPool::new(8 * CHUNK);
        thread::scope(|scope| {
            for mark in 1..=4_usize {
                let pool = &pool;
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        let Ok(chunk) = pool.take() else {
                            thread::yield_now();
                            continue;
                        };
                        // SAFETY: taken, so only this thread has it.
                        let chunk_ref = unsafe { &*chunk };
                        chunk_ref.words.set(mark);
                        std::hint::spin_loop();
                        assert_eq!(chunk_ref.words.get(), mark);
                        pool.put(chunk);
                    }
                });
            }
        });
        assert!(pool.bytes() <= 8 * CHUNK);
    }
}
