//! x86-64: relocation numbers, and entries that choose a function and jump to it.

use core::arch::global_asm;

use crate::platform::interpose::loader_hooks::{choose_dlmopen, choose_dlopen, choose_dlsym, choose_dlvsym};
use crate::platform::interpose::relocations::Binding;

/// Returns how the loader fills a slot with this kind of relocation. `None` if it does not hold a function's address.
pub(crate) fn binding(kind: u32) -> Option<Binding> {
    const R_X86_64_64: u32 = 1;
    const R_X86_64_GLOB_DAT: u32 = 6;
    const R_X86_64_JUMP_SLOT: u32 = 7;
    match kind {
        R_X86_64_JUMP_SLOT => Some(Binding::ByCall),
        R_X86_64_GLOB_DAT => Some(Binding::AtLoad),
        R_X86_64_64 => Some(Binding::InVariable),
        _ => None,
    }
}

/// Defines an entry that calls `choose` with its own (at most three) arguments and jumps to the address that this
/// returns: the function there sees the arguments and the caller of a direct call.
macro_rules! entry {
    ($entry:ident, $choose:path) => {
        unsafe extern "C" {
            pub(crate) fn $entry();
        }

        global_asm!(
            ".pushsection .text",
            ".p2align 4",
            concat!(".globl ", stringify!($entry)),
            concat!(".hidden ", stringify!($entry)),
            concat!(".type ", stringify!($entry), ", @function"),
            concat!(stringify!($entry), ":"),
            ".cfi_startproc",
            "endbr64",
            "push rdi",
            ".cfi_adjust_cfa_offset 8",
            "push rsi",
            ".cfi_adjust_cfa_offset 8",
            "push rdx",
            ".cfi_adjust_cfa_offset 8",
            "call {choose}",
            "pop rdx",
            ".cfi_adjust_cfa_offset -8",
            "pop rsi",
            ".cfi_adjust_cfa_offset -8",
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            "jmp rax",
            ".cfi_endproc",
            concat!(".size ", stringify!($entry), ", . - ", stringify!($entry)),
            ".popsection",
            choose = sym $choose,
        );
    };
}

entry!(stackweave_memory_dlopen, choose_dlopen);
entry!(stackweave_memory_dlmopen, choose_dlmopen);
entry!(stackweave_memory_dlsym, choose_dlsym);
entry!(stackweave_memory_dlvsym, choose_dlvsym);
