//! x86-64: the entry stub and the registers.

use core::arch::{asm, global_asm};
use core::mem::offset_of;

/// DWARF register numbers (System V ABI, x86-64 supplement, figure 3.36).
pub(crate) mod dwarf {
    pub(crate) const FRAME_POINTER: u64 = 6;
    pub(crate) const STACK_POINTER: u64 = 7;
    pub(crate) const RETURN_ADDRESS: u64 = 16;
    /// rbx, rbp, r12 to r15: a function whose entry does not mention them has kept them.
    pub(crate) const CALLEE_SAVED: u32 = 1 << 3 | 1 << 6 | 0b1111 << 12;
    /// Number of registers that unwind tables can mention, including the return address.
    pub(crate) const COUNT: usize = 17;
}

/// The index of each register in a signal's context, in DWARF order.
const CONTEXT_ORDER: [libc::c_int; dwarf::COUNT] = [
    libc::REG_RAX,
    libc::REG_RDX,
    libc::REG_RCX,
    libc::REG_RBX,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_RBP,
    libc::REG_RSP,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
    libc::REG_RIP,
];

/// The machine's registers by DWARF number, and the set of known ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    pub(crate) values: [u64; dwarf::COUNT],
    pub(crate) known: u32,
}

impl Registers {
    /// Creates registers that are all known: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip.
    pub fn all(values: [u64; dwarf::COUNT]) -> Self {
        Self { values, known: (1 << dwarf::COUNT) - 1 }
    }

    pub(crate) fn get(&self, register: usize) -> Option<u64> {
        let value = self.values.get(register)?;
        (self.known >> register & 1 != 0).then_some(*value)
    }

    pub(crate) fn set(&mut self, register: usize, value: Option<u64>) {
        self.known &= !(1 << register);
        if let Some(value) = value {
            self.values[register] = value;
            self.known |= 1 << register;
        }
    }

    /// Creates registers of which only those of a compact step are known.
    pub fn partial(pc: u64, sp: u64, fp: u64) -> Self {
        let mut registers = Self::default();
        registers.set(dwarf::RETURN_ADDRESS as usize, Some(pc));
        registers.set(dwarf::STACK_POINTER as usize, Some(sp));
        registers.set(dwarf::FRAME_POINTER as usize, Some(fp));
        registers
    }

    /// Returns the address of the code.
    pub fn pc(&self) -> u64 {
        self.values[dwarf::RETURN_ADDRESS as usize]
    }

    /// Returns the stack pointer.
    pub fn sp(&self) -> u64 {
        self.values[dwarf::STACK_POINTER as usize]
    }

    /// Returns the frame pointer; 0 if it is not known.
    pub(crate) fn fp(&self) -> u64 {
        self.get(dwarf::FRAME_POINTER as usize).unwrap_or(0)
    }

    /// Returns the registers that a signal interrupted.
    ///
    /// # Safety
    /// `context` points to a `ucontext_t` that the kernel, or code imitating it, filled in.
    pub(crate) unsafe fn from_context(context: *const libc::ucontext_t) -> Self {
        // SAFETY: the caller promises a valid context.
        let saved = unsafe { &(*context).uc_mcontext.gregs };
        Self::all(CONTEXT_ORDER.map(|index| saved[index as usize].cast_unsigned()))
    }

    /// Reads the registers in the `ucontext_t` at `address` with `word`, which reads memory; `None` if it cannot
    /// read one of them.
    pub(crate) fn from_context_at(address: u64, mut word: impl FnMut(u64) -> Option<u64>) -> Option<Self> {
        let saved = address.checked_add(offset_of!(libc::ucontext_t, uc_mcontext.gregs) as u64)?;
        let mut values = [0; dwarf::COUNT];
        for (value, index) in values.iter_mut().zip(CONTEXT_ORDER) {
            *value = word(saved.checked_add(index as u64 * 8)?)?;
        }
        Some(Self::all(values))
    }
}

/// The registers of `capture`'s caller, which the entry stub leaves on the stack.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct EntryRegisters {
    rbx: u64,
    pub(crate) fp: u64,
    r12: u64,
    r13: u64,
    r14: u64,
    r15: u64,
    pub(crate) sp: u64,
    pub(crate) pc: u64,
}

impl From<&EntryRegisters> for Registers {
    fn from(entry: &EntryRegisters) -> Self {
        let mut registers = Self::partial(entry.pc, entry.sp, entry.fp);
        let callee_saved = [(3, entry.rbx), (12, entry.r12), (13, entry.r13), (14, entry.r14), (15, entry.r15)];
        for (register, value) in callee_saved {
            registers.set(register, Some(value));
        }
        registers
    }
}

// Stores the registers of its caller and calls `capture::enter` with a pointer to them as a fifth
// argument. The stack at that call, from its pointer up: EntryRegisters (64 bytes), padding (8), the
// return address, which is the first frame.
global_asm!(
    ".text",
    ".p2align 4",
    ".globl stackweave_unwind_v0_enter",
    ".hidden stackweave_unwind_v0_enter",
    ".type stackweave_unwind_v0_enter, @function",
    "stackweave_unwind_v0_enter:",
    ".cfi_startproc",
    "sub rsp, 72",
    ".cfi_adjust_cfa_offset 72",
    "lea rax, [rsp + 80]",
    "mov r9, [rsp + 72]",
    "mov [rsp], rbx",
    "mov [rsp + 8], rbp",
    "mov [rsp + 16], r12",
    "mov [rsp + 24], r13",
    "mov [rsp + 32], r14",
    "mov [rsp + 40], r15",
    "mov [rsp + 48], rax",
    "mov [rsp + 56], r9",
    "mov r8, rsp",
    "call {enter}@PLT",
    "add rsp, 72",
    ".cfi_adjust_cfa_offset -72",
    "ret",
    ".cfi_endproc",
    ".size stackweave_unwind_v0_enter, . - stackweave_unwind_v0_enter",
    enter = sym crate::platform::capture::enter,
);

unsafe extern "sysv64" {
    /// Captures the stack of its caller: at most `limit` frames, beginning with frame `skip`, into `frames`, and
    /// their stack pointers into `stack_pointers` unless that is null. If `frames` is null, writes only a
    /// `StackMark` to `stack_pointers`.
    #[link_name = "stackweave_unwind_v0_enter"]
    pub(crate) fn enter(frames: *mut u64, limit: usize, skip: usize, stack_pointers: *mut u64) -> u64;
}

/// Returns the address of the thread control block. It is above the stack of every thread but the first.
pub(crate) fn thread_control_block() -> u64 {
    let address;
    // SAFETY: the first word of the block holds its own address.
    unsafe { asm!("mov {0}, qword ptr fs:[0]", out(reg) address, options(nostack, readonly, preserves_flags)) };
    address
}

/// Returns whether a word can be the address of user-space code: neither null nor in the kernel's half.
#[inline(always)]
pub(crate) fn is_user_address(word: u64) -> bool {
    word.wrapping_sub(1) < (1 << 47) - 1
}

/// Makes a raw system call, which does not change `errno`.
///
/// # Safety
/// The same as for the system call itself.
pub(crate) unsafe fn syscall4(number: i64, arguments: [u64; 4]) -> i64 {
    let result;
    // SAFETY: the caller promises a valid call; the kernel clobbers rcx and r11 only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_addresses_are_distinguished_from_null_and_kernel_addresses() {
        for (word, expected) in
            [(0, false), (1, true), (0x7fff_ffff_ffff, true), (1 << 47, false), (1 << 63, false), (u64::MAX, false)]
        {
            assert_eq!(is_user_address(word), expected, "{word:#x}");
        }
    }
}
