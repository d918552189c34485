//! A global allocator that counts what each thread asks of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
    /// Bytes taken less bytes given back; less than 0 for a thread that frees what others took.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counting. A test makes it its `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator;

/// How often the calling thread has asked for memory, or given it back, so far.
pub fn requests() -> u64 {
    REQUESTS.with(Cell::get)
}

/// The most bytes that the calling thread holds at once while it does `work`, more than it held before.
pub fn peak_bytes(work: impl FnOnce()) -> usize {
    let before = HELD.get();
    PEAK.set(before);
    work();
    usize::try_from(PEAK.get() - before).unwrap_or(0)
}

fn count(taken: usize, given_back: usize) {
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
    let held = HELD.get().wrapping_add_unsigned(taken).wrapping_sub_unsigned(given_back);
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
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
