//! A global allocator that counts the requests and bytes of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
    /// Allocated bytes less freed bytes; negative for a thread that frees what other threads allocated.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator with counters. A test uses it as its `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator;

/// Returns how many allocations, reallocations and frees the calling thread has made so far.
pub fn requests() -> u64 {
    REQUESTS.with(Cell::get)
}

/// Returns the peak of the calling thread's live bytes while it does `work`, relative to its live bytes before.
pub fn peak_bytes(work: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    work();
    usize::try_from(PEAK.get() - before).unwrap_or(0)
}

fn count(allocated: usize, freed: usize) {
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
    let live = LIVE.get().wrapping_add_unsigned(allocated).wrapping_sub_unsigned(freed);
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

// SAFETY: every method does what the system's allocator does; the counters are plain thread-local words.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
