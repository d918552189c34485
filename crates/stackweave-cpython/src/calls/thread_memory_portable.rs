//! Thread-local memory: the twin of `thread_memory_x86_64.rs` for other processors.
//!
//! Without the thread pointer, thread-local words have no common offset, and are not found.

use core::ptr;

/// Returns 0: offsets are addresses.
pub(super) fn pointer() -> u64 {
    0
}

/// # Safety
/// There is a readable word at the offset in this thread.
pub(super) unsafe fn word(offset: u64) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe { ptr::with_exposed_provenance::<u64>(offset as usize).read_volatile() }
}

/// Returns an address on the stack, near the stack pointer.
#[inline(always)]
pub(super) fn stack_pointer() -> u64 {
    let here = 0_u8;
    (&raw const here) as u64
}
