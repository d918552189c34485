//! The registers of a thread of another process, as unwind tables number them.

/// DWARF numbers (System V ABI, x86-64 supplement, figure 3.36).
pub(crate) const FRAME_POINTER: usize = 6;
pub(crate) const STACK_POINTER: usize = 7;
pub(crate) const RETURN_ADDRESS: usize = 16;
/// rbx, rbp, r12 to r15: a function that says nothing about these has kept them.
pub(crate) const CALLEE_SAVED: [usize; 6] = [3, 6, 12, 13, 14, 15];
/// The registers that unwind tables can speak of, the return address among them.
pub(crate) const COUNT: usize = 17;

/// What is known of each register in one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers([Option<u64>; COUNT]);

impl Registers {
    pub(crate) fn get(&self, register: usize) -> Option<u64> {
        self.0.get(register).copied().flatten()
    }

    pub(crate) fn set(&mut self, register: usize, value: Option<u64>) {
        if let Some(slot) = self.0.get_mut(register) {
            *slot = value;
        }
    }

    pub(crate) fn pc(&self) -> u64 {
        self.get(RETURN_ADDRESS).unwrap_or(0)
    }

    pub(crate) fn sp(&self) -> u64 {
        self.get(STACK_POINTER).unwrap_or(0)
    }

    pub(crate) fn fp(&self) -> u64 {
        self.get(FRAME_POINTER).unwrap_or(0)
    }

    /// Those of a caller of which no more is known.
    pub(crate) fn partial(pc: u64, sp: u64, fp: u64) -> Self {
        let mut registers = Self::default();
        registers.set(RETURN_ADDRESS, Some(pc));
        registers.set(STACK_POINTER, Some(sp));
        registers.set(FRAME_POINTER, Some(fp));
        registers
    }
}

impl From<&libc::user_regs_struct> for Registers {
    fn from(registers: &libc::user_regs_struct) -> Self {
        let r = registers;
        let all = [
            r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15, r.rip,
        ];
        Self(all.map(Some))
    }
}

/// Where `ucontext_t` of a signal frame has each register, by DWARF number, in words.
pub(crate) const CONTEXT_WORDS: [u64; COUNT] = [18, 17, 19, 16, 14, 13, 15, 20, 5, 6, 7, 8, 9, 10, 11, 12, 21];
