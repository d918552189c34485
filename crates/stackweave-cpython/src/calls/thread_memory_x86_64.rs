//! Thread-local memory, by offsets from the thread pointer.
//!
//! Hot file: one instruction each; async-signal-safe.

use core::arch::asm;

/// Returns the thread pointer, from which offsets are counted.
#[inline(always)]
pub(super) fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: the first word at the pointer is the pointer itself, according to the ABI.
    unsafe { asm!("mov {0}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

/// # Safety
/// There is a readable word at the offset in this thread.
#[inline(always)]
pub(super) unsafe fn word(offset: u64) -> u64 {
    let word: u64;
    // SAFETY: passed on to the caller.
    unsafe {
        asm!("mov {0}, qword ptr fs:[{1}]", out(reg) word, in(reg) offset, options(nostack, readonly, preserves_flags));
    }
    word
}

/// Returns the stack pointer.
#[inline(always)]
pub(super) fn stack_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {0}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}
