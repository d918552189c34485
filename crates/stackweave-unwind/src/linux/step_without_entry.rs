//! Code that no unwind entry covers: hand-written assembly, linkage stubs, generated code.
//!
//! There is no table to read, only evidence. A step is taken if the evidence is consistent: a wrong frame is worse
//! than a stack that ends early.

use stackweave_core::{CodeAddress, StopReason};

use crate::platform::arch::code::{self, CallTarget};
use crate::platform::arch::{Registers, is_user_address};
use crate::platform::stepping::{ReadMemory, Stepped};

/// Takes a step from a frame in code that no unwind entry covers: from a signal trampoline, from a function that
/// has hardly changed its stack, or from one that keeps a frame pointer. `end_of_entry` returns the end of the
/// unwind entry that covers an address, if there is one.
///
/// # Errors
/// `reason` if there is no evidence for the caller, [`StopReason::BadMemory`] if a signal's context cannot be
/// read.
pub fn step(
    memory: &mut impl ReadMemory,
    end_of_entry: impl FnMut(u64) -> Option<u64>,
    address: CodeAddress,
    registers: &Registers,
    reason: StopReason,
) -> Result<Stepped, StopReason> {
    let (code, sp, fp) = (address.address(), registers.sp(), registers.fp());
    let mut frame = UncoveredFrame { memory, end_of_entry, code, sp, fp };
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
    // Generated code is called through pointers; code of a module must prove that it keeps a frame pointer.
    let is_sure = call != CallTo::Anywhere || reason == StopReason::NoModule || frame.keeps_frame_pointer();
    let callers_fp = frame.memory.word(fp).ok_or(reason)?;
    if is_sure { Ok(caller(return_address, fp + 16, callers_fp)) } else { Err(reason) }
}

/// The target of the call instruction before a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallTo {
    /// A target this many bytes before the frame's own code.
    Here(u64),
    /// A target in a register or in memory.
    Anywhere,
}

fn caller(return_address: u64, sp: u64, fp: u64) -> Stepped {
    Stepped { registers: Registers::partial(return_address, sp, fp), is_signal_frame: false }
}

/// The frame whose caller is determined.
struct UncoveredFrame<'a, M, E> {
    memory: &'a mut M,
    end_of_entry: E,
    code: u64,
    sp: u64,
    fp: u64,
}

impl<M: ReadMemory, E: FnMut(u64) -> Option<u64>> UncoveredFrame<'_, M, E> {
    /// Returns the word at `slot` and the call before it, if it can be the return address of this frame. The
    /// target of a direct call must be near the frame's own code, and have no unwind entry either, or one that
    /// ends just before it (`clone3` has none for the instructions that both threads reach); otherwise frames in
    /// between would be skipped.
    fn call_at(&mut self, slot: u64) -> Option<(u64, CallTo)> {
        let return_address = self.memory.word(slot).filter(|address| is_user_address(*address))?;
        let before = self.memory.code(return_address.checked_sub(7)?)?;
        let CallTarget::Direct(target) = code::call_before(before, return_address)? else {
            return Some((return_address, CallTo::Anywhere));
        };
        let distance = match self.distance_to(target) {
            Some(distance) => distance,
            None => self.through_linkage(target).and_then(|target| self.distance_to(target))?,
        };
        Some((return_address, CallTo::Here(distance)))
    }

    /// Returns how many bytes `target` is before the frame's code, if both can be in one function.
    fn distance_to(&mut self, target: u64) -> Option<u64> {
        const LONGEST_FUNCTION: u64 = 1 << 20;
        const LONGEST_REST: u64 = 64;
        let distance = self.code.wrapping_sub(target);
        let runs_on = |end: u64| self.code.wrapping_sub(end) < LONGEST_REST;
        (distance < LONGEST_FUNCTION && (self.end_of_entry)(target).is_none_or(runs_on)).then_some(distance)
    }

    /// Finds the caller of interrupted code that has hardly changed its stack: at a function's first instruction,
    /// the return address is on top; after `push %rbp`, it is above the caller's frame pointer; in a linkage stub,
    /// it is above what the stub pushed.
    fn caller_near_top(&mut self) -> Option<Stepped> {
        const STUB: u64 = 16;
        let has_pushed_fp = self.memory.word(self.sp) == Some(self.fp);
        for pushed in [0, 8, 16] {
            let Some((return_address, call)) = self.call_at(self.sp.wrapping_add(pushed)) else { continue };
            let is_sure = match (pushed, call) {
                (0, CallTo::Here(_)) => true,
                (0, CallTo::Anywhere) => self.code.is_multiple_of(16) || self.code_is(0, code::is_landing_pad),
                (8, _) if has_pushed_fp => self.code_is(1, code::is_push_of_frame_pointer),
                (_, CallTo::Here(distance)) => distance < STUB,
                (_, CallTo::Anywhere) => false,
            };
            if is_sure {
                return Some(caller(return_address, self.sp.wrapping_add(pushed + 8), self.fp));
            }
        }
        None
    }

    /// Returns whether `is` holds for the code that is this many bytes before the frame's.
    fn code_is<const N: usize>(&mut self, before: u64, is: impl FnOnce([u8; N]) -> bool) -> bool {
        self.memory.code(self.code.wrapping_sub(before)).is_some_and(is)
    }

    /// Returns whether the code before the frame's sets up a frame pointer.
    fn keeps_frame_pointer(&mut self) -> bool {
        const REACH: usize = 1024;
        self.code_is::<REACH>(REACH as u64, |code| code::sets_up_frame_pointer(&code))
    }

    /// Returns the target of a linkage stub (PLT) at `target`.
    fn through_linkage(&mut self, target: u64) -> Option<u64> {
        let slot = code::linkage_slot(&self.memory.code(target)?, target)?;
        self.memory.code(slot).map(u64::from_le_bytes)
    }

    /// Returns the frame that a signal interrupted: the trampoline's stack pointer points to the context.
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
    struct ByteMemory(BTreeMap<u64, u8>);

    impl ByteMemory {
        fn with(mut self, address: u64, bytes: &[u8]) -> Self {
            self.0.extend((address..).zip(bytes.iter().copied()));
            self
        }

        fn with_words(self, address: u64, words: &[u64]) -> Self {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.with(address, &bytes)
        }
    }

    impl ReadMemory for ByteMemory {
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

    /// Returns a frame of `FUNCTION` that the instruction before `RETURN` has called, with that return address on
    /// top of its stack.
    fn called() -> ByteMemory {
        let distance = i32::try_from(FUNCTION.cast_signed() - RETURN.cast_signed()).unwrap().to_le_bytes();
        let [a, b, c, d] = distance;
        ByteMemory::default().with(RETURN - 7, &[0x90, 0x90, 0xe8, a, b, c, d]).with_words(STACK, &[RETURN])
    }

    fn step_from(
        mut memory: ByteMemory,
        end_of_entry: Option<u64>,
        address: CodeAddress,
    ) -> Result<(u64, u64, bool), StopReason> {
        let registers = Registers::partial(address.address(), STACK, 0);
        let stepped = step(&mut memory, |_| end_of_entry, address, &registers, StopReason::NoUnwindEntry)?;
        Ok((stepped.registers.pc(), stepped.registers.sp(), stepped.is_signal_frame))
    }

    #[test]
    fn at_the_first_instruction_the_return_address_is_on_top() {
        let first = CodeAddress::instruction_pointer(FUNCTION);
        assert_eq!(step_from(called(), None, first), Ok((RETURN, STACK + 8, false)));
        let elsewhere = CodeAddress::instruction_pointer(FUNCTION - 0x10);
        assert_eq!(
            step_from(called(), None, elsewhere),
            Err(StopReason::NoUnwindEntry),
            "the target of the call is behind it"
        );
    }

    #[test]
    fn code_may_continue_behind_its_entry_but_not_far() {
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
    fn a_signal_trampoline_leads_to_the_interrupted_code() {
        // `mov $15, %rax; syscall`
        let trampoline = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        let mut context = [0; 23];
        (context[20], context[21]) = (0x9000, 0x3333);
        let memory = ByteMemory::default().with(FUNCTION, &trampoline).with_words(STACK, &context);
        let address = CodeAddress::return_address(FUNCTION);
        assert_eq!(step_from(memory, None, address), Ok((0x3333, 0x9000, true)));
        let cut = ByteMemory::default().with(FUNCTION, &trampoline).with_words(STACK, &context[..20]);
        assert_eq!(step_from(cut, None, address), Err(StopReason::BadMemory));
    }
}
