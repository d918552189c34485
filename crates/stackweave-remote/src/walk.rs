//! Walks the native stack of a thread of another, stopped process.
//!
//! Unwind tables give every register at each step, so that all rows that tables can express can be followed,
//! including signal frames. The steps are those that `stackweave-unwind` takes where its rules are not sufficient:
//! here, some thousand frames are read once.

use stackweave_core::{CodeAddress, StackPointer, StopReason};
use stackweave_unwind::stepping::{Registers, Stepped, step_without_entry};

use crate::modules::Modules;
use crate::stopped_memory::StoppedMemory;

/// The maximum number of frames.
pub(crate) const MAX_FRAMES: usize = 1 << 16;

/// A native stack, innermost first.
#[derive(Clone, Debug)]
pub(crate) struct RemoteNativeStack {
    pub(crate) addresses: Vec<CodeAddress>,
    pub(crate) stack_pointers: Vec<StackPointer>,
    pub(crate) stop: StopReason,
}

/// The inputs of a walk.
pub(crate) struct NativeWalk<'a> {
    pub(crate) modules: &'a Modules,
    pub(crate) memory: &'a mut StoppedMemory,
}

/// A frame: its address, and its known registers.
#[derive(Clone, Copy, Debug)]
struct RemoteFrame {
    address: CodeAddress,
    registers: Registers,
}

impl NativeWalk<'_> {
    /// Returns the stack of a thread with these registers.
    pub(crate) fn walk(&mut self, registers: &Registers) -> RemoteNativeStack {
        let mut stack =
            RemoteNativeStack { addresses: Vec::new(), stack_pointers: Vec::new(), stop: StopReason::DepthLimit };
        let address = CodeAddress::instruction_pointer(registers.pc());
        let mut frame = RemoteFrame { address, registers: *registers };
        while stack.addresses.len() < MAX_FRAMES {
            stack.addresses.push(frame.address);
            stack.stack_pointers.push(StackPointer(frame.registers.sp()));
            match self.step(&frame) {
                Ok(caller) => frame = caller,
                Err(stop) => {
                    stack.stop = stop;
                    break;
                }
            }
        }
        stack
    }

    fn step(&mut self, frame: &RemoteFrame) -> Result<RemoteFrame, StopReason> {
        let stepped = match self.step_by_entry(frame) {
            Err(reason @ (StopReason::NoModule | StopReason::NoUnwindEntry)) => {
                let modules = self.modules;
                let end_of_entry = |address| end_of_entry(modules, address);
                step_without_entry(self.memory, end_of_entry, frame.address, &frame.registers, reason)?
            }
            stepped => stepped?,
        };
        let registers = stepped.registers;
        // The stack only grows towards the outermost frame, unless a signal handler runs on a different stack.
        if !stepped.is_signal_frame && registers.sp() < frame.registers.sp().saturating_add(8) {
            return Err(StopReason::BadMemory);
        }
        Ok(RemoteFrame { address: stepped.address(), registers })
    }

    /// Takes a step by the unwind entry that covers the frame's code.
    fn step_by_entry(&mut self, frame: &RemoteFrame) -> Result<Stepped, StopReason> {
        let pc = frame.address.lookup();
        let module = self.modules.find(pc).ok_or(StopReason::NoModule)?;
        let table = module.image.unwind_table().ok_or(StopReason::NoUnwindEntry)?;
        table.step(module.module.stated(pc), &frame.registers, self.memory)
    }
}

/// Returns the registers of a stopped thread, as unwind tables number them.
pub(crate) fn registers_of(r: &libc::user_regs_struct) -> Registers {
    Registers::all([
        r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15,
        r.rip,
    ])
}

/// Returns the end of the unwind entry that covers this address, if there is one.
fn end_of_entry(modules: &Modules, address: u64) -> Option<u64> {
    let module = modules.find(address)?;
    let end = module.image.unwind_table()?.end_of_entry(module.module.stated(address))?;
    Some(end.wrapping_add(module.module.bias))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    /// A thread may have any values in its registers: its first frame is included, and invalid pointers are not
    /// followed.
    #[test]
    fn implausible_registers_end_the_walk() {
        let process = std::process::id();
        let modules = Modules::of(Process { number: process });
        let code = modules.as_slice().first().map_or(0, |module| module.module.start);
        for pc in [0, 8, code, u64::MAX] {
            for sp in [0, 8, u64::MAX - 15, u64::MAX - 7, u64::MAX] {
                let mut memory = StoppedMemory::of(process);
                let mut walk = NativeWalk { modules: &modules, memory: &mut memory };
                for fp in [0, sp, u64::MAX, (1 << 47) - 8] {
                    let stack = walk.walk(&Registers::partial(pc, sp, fp));
                    assert_eq!(stack.addresses.len(), 1, "{pc:x} {sp:x} {fp:x}");
                    let registers = Registers::partial(pc, sp, fp);
                    let caller = RemoteFrame { address: CodeAddress::return_address(pc), registers };
                    assert!(walk.step(&caller).is_err(), "{pc:x} {sp:x} {fp:x}");
                }
            }
        }
    }
}
