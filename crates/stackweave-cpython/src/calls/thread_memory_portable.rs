//! The memory that each thread has for itself: the twin of `thread_memory_x86_64.rs` on other processors.
//!
//! Without the thread's pointer, what is at one place in each thread has no common offset, and is not found.

use core::ptr;

/// Offsets are addresses.
pub(super) fn pointer() -> u64 {
    0
}

/// # Safety
/// There is a readable word at the offset in this thread.
pub(super) unsafe fn word(offset: u64) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe { ptr::with_exposed_provenance::<u64>(offset as usize).read_volatile() }
}

/// An address on the stack, near the stack pointer.
#[inline(always)]
pub(super) fn stack_pointer() -> u64 {
    let here = 0_u8;
    (&raw const here) as u64
}
