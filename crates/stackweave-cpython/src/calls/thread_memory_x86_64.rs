//! The memory that each thread has for itself, as the loader laid it out: by offsets from the thread's pointer.
//!
//! Hot file: an instruction or two each; async-signal-safe.

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss.stackweave_cpython, \"awT\", @nobits",
    ".p2align 3",
    ".globl stackweave_cpython_v0_stack",
    ".hidden stackweave_cpython_v0_stack",
    ".type stackweave_cpython_v0_stack, @object",
    ".size stackweave_cpython_v0_stack, 16",
    "stackweave_cpython_v0_stack: .zero 16",
    ".popsection",
);

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

/// Two words of this crate's own, 0 at first: where the stack that may be used ends, and how long it is.
#[inline(always)]
pub(super) fn stack() -> [u64; 2] {
    let (floor, length): (u64, u64);
    // SAFETY: loads this thread's own sixteen bytes of static TLS.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + stackweave_cpython_v0_stack@gottpoff]",
            "mov {1}, qword ptr fs:[{0} + 8]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) floor,
            out(reg) length,
            options(nostack, readonly, preserves_flags),
        );
    }
    [floor, length]
}

pub(super) fn set_stack([floor, length]: [u64; 2]) {
    // SAFETY: stores to this thread's own sixteen bytes of static TLS.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + stackweave_cpython_v0_stack@gottpoff]",
            "mov qword ptr fs:[{0}], {1}",
            "mov qword ptr fs:[{0} + 8], {2}",
            out(reg) _,
            in(reg) floor,
            in(reg) length,
            options(nostack, preserves_flags),
        );
    }
}
