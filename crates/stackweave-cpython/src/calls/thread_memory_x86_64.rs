//! The memory that each thread has for itself, as the loader laid it out: by offsets from the thread's pointer.
//!
//! Hot file: an instruction each; async-signal-safe.

use core::arch::asm;

/// The thread's pointer: offsets are from here.
#[inline(always)]
pub(super) fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: the first word at the pointer is the pointer itself, as the ABI says.
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

/// The stack pointer.
#[inline(always)]
pub(super) fn stack_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {0}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}
