//! The native stack of a thread of another process, which stands still.
//!
//! Every register is followed by the module's unwind tables, so that each row that tables can state is followed, signal
//! frames among them. This is the slow twin of `stackweave-unwind`, which reads its own process only and is made to be
//! quick: here some thousand frames are read once.

mod registers;
mod table;
mod without_entry;

use stackweave_core::{CodeAddress, StackPointer, StopReason};

pub(crate) use registers::Registers;
use table::{Stepped, Tables};

use crate::modules::Modules;
use crate::stack_memory::StillMemory;

/// More frames than this are not followed.
pub(crate) const DEEPEST: usize = 1 << 16;

/// A native stack, innermost first.
#[derive(Clone, Debug)]
pub(crate) struct NativeStack {
    pub(crate) addresses: Vec<CodeAddress>,
    pub(crate) stack_pointers: Vec<StackPointer>,
    pub(crate) stop: StopReason,
}

/// What a walk reads.
pub(crate) struct Walk<'a> {
    pub(crate) modules: &'a Modules,
    pub(crate) memory: &'a mut StillMemory,
}

/// A frame: where it is, and what is known of its registers.
#[derive(Clone, Copy, Debug)]
struct Frame {
    address: CodeAddress,
    registers: Registers,
}

impl Frame {
    fn caller(registers: &Registers) -> Self {
        Self { address: CodeAddress::return_address(registers.pc()), registers: *registers }
    }

    fn interrupted(registers: &Registers) -> Self {
        Self { address: CodeAddress::instruction_pointer(registers.pc()), registers: *registers }
    }
}

impl Walk<'_> {
    /// The stack of a thread with these registers.
    pub(crate) fn walk(&mut self, registers: &Registers) -> NativeStack {
        let mut stack = NativeStack { addresses: Vec::new(), stack_pointers: Vec::new(), stop: StopReason::DepthLimit };
        let mut frame = Frame::interrupted(registers);
        while stack.addresses.len() < DEEPEST {
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

    fn step(&mut self, frame: &Frame) -> Result<Frame, StopReason> {
        let pc = frame.address.lookup();
        let Some(module) = self.modules.find(pc) else {
            return without_entry::step(self, frame, StopReason::NoModule);
        };
        let stepped = Tables::of(&module.image)
            .ok_or(StopReason::NoUnwindEntry)
            .and_then(|tables| tables.step(module.module.stated(pc), &frame.registers, self.memory));
        match stepped {
            Ok(Stepped { registers, is_signal_frame: true }) => Ok(Frame::interrupted(&registers)),
            // The stack only grows towards the outermost frame, until a signal's handler was run on another one.
            Ok(Stepped { registers, .. }) if registers.sp() < frame.registers.sp().saturating_add(8) => {
                Err(StopReason::BadMemory)
            }
            Ok(Stepped { registers, .. }) => Ok(Frame::caller(&registers)),
            Err(StopReason::NoUnwindEntry) => without_entry::step(self, frame, StopReason::NoUnwindEntry),
            Err(reason) => Err(reason),
        }
    }

    /// Where the unwind entry ends that covers this address, if one does.
    fn end_of_entry(&self, address: u64) -> Option<u64> {
        let module = self.modules.find(address)?;
        let end = Tables::of(&module.image)?.end_of_entry(module.module.stated(address))?;
        Some(end.wrapping_add(module.module.bias))
    }
}

/// Whether a program can have something there.
fn is_user_address(word: u64) -> bool {
    word != 0 && word >> 47 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    /// A thread may have anything in its registers: its first frame is shown, and nothing is followed into nowhere.
    #[test]
    fn registers_without_sense_end_the_walk() {
        let process = std::process::id();
        let modules = Modules::of(Process { number: process });
        let code = modules.as_slice().first().map_or(0, |module| module.module.start);
        for pc in [0, 8, code, u64::MAX] {
            for sp in [0, 8, u64::MAX - 15, u64::MAX - 7, u64::MAX] {
                let mut memory = StillMemory::of(process);
                let mut walk = Walk { modules: &modules, memory: &mut memory };
                for fp in [0, sp, u64::MAX, (1 << 47) - 8] {
                    let stack = walk.walk(&Registers::partial(pc, sp, fp));
                    assert_eq!(stack.addresses.len(), 1, "{pc:x} {sp:x} {fp:x}");
                    let caller = Frame::caller(&Registers::partial(pc, sp, fp));
                    assert!(walk.step(&caller).is_err(), "{pc:x} {sp:x} {fp:x}");
                }
            }
        }
    }
}
