//! Code that no unwind entry covers: hand-written assembly, linkage stubs, generated code.
//!
//! There is no table to read, only signs. A step is taken when they agree that it is the right one: a wrong
//! frame is worse than a stack that ends early.

use stackweave_core::{CodeAddress, StopReason};

use crate::platform::arch::code::{self, CallTarget};
use crate::platform::arch::{Registers, is_user_address};
use crate::platform::stepping::{ReadMemory, Stepped};

/// Steps from a frame in code that no unwind entry covers: from a signal trampoline, a function that has hardly touched its
/// stack, or one that keeps a frame pointer. `end_of_entry` returns where the unwind entry ends that covers an address, if one
/// does.
///
/// # Errors
/// `reason` if no signs show the caller, [`StopReason::BadMemory`] if a signal's context can't be read.
pub fn step(
    memory: &mut impl ReadMemory,
    end_of_entry: impl FnMut(u64) -> Option<u64>,
    address: CodeAddress,
    registers: &Registers,
    reason: StopReason,
) -> Result<Stepped, StopReason> {
    let (code, sp, fp) = (address.address(), registers.sp(), registers.fp());
    let mut frame = Frame { memory, end_of_entry, code, sp, fp };
    if address.is_exact() {
        if let Some(caller) = frame.caller_near_top() {
            return Ok(caller);
        }
    } else if frame.memory.code(code).is_some_and(|code| code::is_signal_return(&code)) {
        return frame.interrupted();
    }
    if fp < sp || !fp.is_multiple_of(8) || !is_user_address(fp) {
        return Err(reason);
    }
    let Some((return_address, call)) = frame.call_at(fp + 8) else { return Err(reason) };
    // Generated code is called through pointers; code of a module must show that it keeps a frame pointer.
    let is_sure = call != Call::Anywhere || reason == StopReason::NoModule || frame.keeps_frame_pointer();
    let callers_fp = frame.memory.word(fp).ok_or(reason)?;
    if is_sure { Ok(caller(return_address, fp + 16, callers_fp)) } else { Err(reason) }
}

/// What a call instruction shows of the frame that may return behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// It leads this many bytes before the frame's own code.
    Here(u64),
    /// It leads wherever a register or memory said.
    Anywhere,
}

fn caller(return_address: u64, sp: u64, fp: u64) -> Stepped {
    Stepped { registers: Registers::partial(return_address, sp, fp), is_signal_frame: false }
}

/// The frame being stepped from.
struct Frame<'a, M, E> {
    memory: &'a mut M,
    end_of_entry: E,
    code: u64,
    sp: u64,
    fp: u64,
}

impl<M: ReadMemory, E: FnMut(u64) -> Option<u64>> Frame<'_, M, E> {
    /// The word at `slot` and the call before it, if it can be the return address of this frame. A direct call must lead to
    /// code near the frame's own, without an unwind entry as that is or with one that ends just before it (`clone3` has none
    /// for the instructions that two threads come to); otherwise frames in between would be passed over.
    fn call_at(&mut self, slot: u64) -> Option<(u64, Call)> {
        let return_address = self.memory.word(slot).filter(|address| is_user_address(*address))?;
        let before = self.memory.code(return_address.checked_sub(7)?)?;
        let CallTarget::Direct(target) = code::call_before(before, return_address)? else {
            return Some((return_address, Call::Anywhere));
        };
        let distance = match self.distance_to(target) {
            Some(distance) => distance,
            None => self.through_linkage(target).and_then(|target| self.distance_to(target))?,
        };
        Some((return_address, Call::Here(distance)))
    }

    /// How many bytes before the frame's code `target` lies, if that can be one function.
    fn distance_to(&mut self, target: u64) -> Option<u64> {
        const LONGEST_FUNCTION: u64 = 1 << 20;
        const LONGEST_REST: u64 = 64;
        let distance = self.code.wrapping_sub(target);
        let runs_on = |end: u64| self.code.wrapping_sub(end) < LONGEST_REST;
        (distance < LONGEST_FUNCTION && (self.end_of_entry)(target).is_none_or(runs_on)).then_some(distance)
    }

    /// The caller of interrupted code that has hardly touched its stack: at a function's first instruction the
    /// return address is on top; after `push %rbp` it lies above the caller's frame pointer; in a linkage stub,
    /// above what the stub pushed.
    fn caller_near_top(&mut self) -> Option<Stepped> {
        const STUB: u64 = 16;
        let has_pushed_fp = self.memory.word(self.sp) == Some(self.fp);
        for pushed in [0, 8, 16] {
            let Some((return_address, call)) = self.call_at(self.sp.wrapping_add(pushed)) else { continue };
            let is_sure = match (pushed, call) {
                (0, Call::Here(_)) => true,
                (0, Call::Anywhere) => self.code.is_multiple_of(16) || self.code_is(0, code::is_landing_pad),
                (8, _) if has_pushed_fp => self.code_is(1, code::is_push_of_frame_pointer),
                (_, Call::Here(distance)) => distance < STUB,
                (_, Call::Anywhere) => false,
            };
            if is_sure {
                return Some(caller(return_address, self.sp.wrapping_add(pushed + 8), self.fp));
            }
        }
        None
    }

    /// Whether `is` holds for the code that many bytes before the frame's.
    fn code_is<const N: usize>(&mut self, before: u64, is: impl FnOnce([u8; N]) -> bool) -> bool {
        self.memory.code(self.code.wrapping_sub(before)).is_some_and(is)
    }

    /// Whether the code before the frame's sets up a frame pointer.
    fn keeps_frame_pointer(&mut self) -> bool {
        const REACH: usize = 1024;
        self.code_is::<REACH>(REACH as u64, |code| code::sets_up_frame_pointer(&code))
    }

    /// Where a linkage stub (PLT) at `target` leads.
    fn through_linkage(&mut self, target: u64) -> Option<u64> {
        let slot = code::linkage_slot(&self.memory.code(target)?, target)?;
        self.memory.code(slot).map(u64::from_le_bytes)
    }

    /// The frame that a signal interrupted: the trampoline's stack pointer points to the context.
    fn interrupted(&mut self) -> Result<Stepped, StopReason> {
        let registers = Registers::from_context_at(self.sp, |address| self.memory.word(address));
        let registers = registers.ok_or(StopReason::BadMemory)?;
        Ok(Stepped { registers, is_signal_frame: true })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Memory of another process, byte by byte.
    #[derive(Default)]
    struct Bytes(BTreeMap<u64, u8>);

    impl Bytes {
        fn with(mut self, address: u64, bytes: &[u8]) -> Self {
            self.0.extend((address..).zip(bytes.iter().copied()));
            self
        }

        fn with_words(self, address: u64, words: &[u64]) -> Self {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.with(address, &bytes)
        }
    }

    impl ReadMemory for Bytes {
        fn word(&mut self, address: u64) -> Option<u64> {
            self.code(address).map(u64::from_le_bytes)
        }

        fn code<const N: usize>(&mut self, address: u64) -> Option<[u8; N]> {
            let mut bytes = [0; N];
            for (byte, address) in bytes.iter_mut().zip(address..) {
                *byte = *self.0.get(&address)?;
            }
            Some(bytes)
        }
    }

    const FUNCTION: u64 = 0x1000;
    const RETURN: u64 = 0x2000;
    const STACK: u64 = 0x7000;

    /// A frame of `FUNCTION`, which is called by the instruction before `RETURN`, with that on top of its stack.
    fn called() -> Bytes {
        let distance = i32::try_from(FUNCTION.cast_signed() - RETURN.cast_signed()).unwrap().to_le_bytes();
        let [a, b, c, d] = distance;
        Bytes::default().with(RETURN - 7, &[0x90, 0x90, 0xe8, a, b, c, d]).with_words(STACK, &[RETURN])
    }

    fn step_from(
        mut memory: Bytes,
        end_of_entry: Option<u64>,
        address: CodeAddress,
    ) -> Result<(u64, u64, bool), StopReason> {
        let registers = Registers::partial(address.address(), STACK, 0);
        let stepped = step(&mut memory, |_| end_of_entry, address, &registers, StopReason::NoUnwindEntry)?;
        Ok((stepped.registers.pc(), stepped.registers.sp(), stepped.is_signal_frame))
    }

    #[test]
    fn the_caller_of_the_first_instruction_is_on_top() {
        let first = CodeAddress::instruction_pointer(FUNCTION);
        assert_eq!(step_from(called(), None, first), Ok((RETURN, STACK + 8, false)));
        let elsewhere = CodeAddress::instruction_pointer(FUNCTION - 0x10);
        assert_eq!(step_from(called(), None, elsewhere), Err(StopReason::NoUnwindEntry), "the call leads behind it");
    }

    #[test]
    fn code_may_run_on_behind_its_entry_but_not_far() {
        let behind = CodeAddress::instruction_pointer(FUNCTION + 0x20);
        assert_eq!(step_from(called(), Some(FUNCTION + 0x18), behind), Ok((RETURN, STACK + 8, false)));
        assert_eq!(
            step_from(called(), Some(FUNCTION + 0x40), behind),
            Err(StopReason::NoUnwindEntry),
            "it has an entry"
        );
        let far = CodeAddress::instruction_pointer(FUNCTION + 0x100);
        assert_eq!(step_from(called(), Some(FUNCTION + 0x18), far), Err(StopReason::NoUnwindEntry));
    }

    #[test]
    fn a_signal_trampoline_leads_to_what_it_interrupted() {
        // `mov $15, %rax; syscall`
        let trampoline = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        let mut context = [0; 23];
        (context[20], context[21]) = (0x9000, 0x3333);
        let memory = Bytes::default().with(FUNCTION, &trampoline).with_words(STACK, &context);
        let address = CodeAddress::return_address(FUNCTION);
        assert_eq!(step_from(memory, None, address), Ok((0x3333, 0x9000, true)));
        let cut = Bytes::default().with(FUNCTION, &trampoline).with_words(STACK, &context[..20]);
        assert_eq!(step_from(cut, None, address), Err(StopReason::BadMemory));
    }
}
