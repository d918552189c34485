//! Code that no unwind entry covers: hand-written assembly, linkage stubs, generated code.
//!
//! The twin of the file of this name in `stackweave-unwind`, with the same signs: a step is taken when they agree that it
//! is the right one, as a wrong frame is worse than a stack that ends early.

use stackweave_core::StopReason;
use stackweave_core::code_signs::{self, CallTarget};

use super::registers::{CONTEXT_WORDS, Registers};
use super::{Frame, Walk, is_user_address};

/// The caller of `frame`, or `reason` if there is no telling: a signal trampoline, a function that has hardly touched its
/// stack, or one that keeps a frame pointer.
pub(super) fn step(walk: &mut Walk<'_>, frame: &Frame, reason: StopReason) -> Result<Frame, StopReason> {
    let code = frame.address.address();
    if frame.address.is_exact() {
        if let Some(caller) = caller_near_top(walk, frame) {
            return Ok(caller);
        }
    } else if walk.memory.bytes(code).is_some_and(|code| code_signs::is_signal_return(&code)) {
        return interrupted_by_signal(walk, frame);
    }
    let (sp, fp) = (frame.registers.sp(), frame.registers.fp());
    if fp < sp || !fp.is_multiple_of(8) || !is_user_address(fp) {
        return Err(reason);
    }
    let Some((return_address, call)) = call_at(walk, frame, fp + 8) else { return Err(reason) };
    // Generated code is called through pointers; code of a module must show that it keeps a frame pointer.
    let is_sure = call != Call::Anywhere || reason == StopReason::NoModule || keeps_frame_pointer(walk, code);
    let callers_fp = walk.memory.word(fp).ok_or(reason)?;
    if is_sure { Ok(caller(return_address, fp + 16, callers_fp)) } else { Err(reason) }
}

/// What a call instruction tells of the frame that may return behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// It leads this many bytes before the frame's own code.
    Here(u64),
    /// It leads wherever a register or memory said.
    Anywhere,
}

fn caller(return_address: u64, sp: u64, fp: u64) -> Frame {
    Frame::caller(&Registers::partial(return_address, sp, fp))
}

/// The word at `slot` and the call before it, if it can be the return address of `frame`. A direct call must lead to code
/// near the frame's own, without an unwind entry as that is or with one that ends just before it (`clone3` has none for the
/// instructions that two threads come to); otherwise frames in between would be passed over.
fn call_at(walk: &mut Walk<'_>, frame: &Frame, slot: u64) -> Option<(u64, Call)> {
    const LONGEST_FUNCTION: u64 = 1 << 20;
    const LONGEST_REST: u64 = 64;
    let return_address = walk.memory.word(slot).filter(|address| is_user_address(*address))?;
    let before = walk.memory.bytes(return_address.checked_sub(7)?)?;
    let CallTarget::Direct(target) = code_signs::call_before(before, return_address)? else {
        return Some((return_address, Call::Anywhere));
    };
    let is_led_here = |walk: &Walk<'_>, target: u64| {
        let code = frame.address.address();
        let distance = code.wrapping_sub(target);
        let runs_on = |end: u64| code.wrapping_sub(end) < LONGEST_REST;
        (distance < LONGEST_FUNCTION && walk.end_of_entry(target).is_none_or(runs_on)).then_some(distance)
    };
    let distance = match is_led_here(walk, target) {
        Some(distance) => distance,
        None => through_linkage(walk, target).and_then(|target| is_led_here(walk, target))?,
    };
    Some((return_address, Call::Here(distance)))
}

/// The caller of interrupted code that has hardly touched its stack: at a function's first instruction the return address
/// is on top; after `push %rbp` it lies above the caller's frame pointer; in a linkage stub, above what the stub pushed.
fn caller_near_top(walk: &mut Walk<'_>, frame: &Frame) -> Option<Frame> {
    const STUB: u64 = 16;
    let (sp, fp) = (frame.registers.sp(), frame.registers.fp());
    let code = frame.address.address();
    let has_pushed_fp = walk.memory.word(sp) == Some(fp);
    for pushed in [0, 8, 16] {
        let Some((return_address, call)) = call_at(walk, frame, sp.wrapping_add(pushed)) else { continue };
        let is_sure = match (pushed, call) {
            (0, Call::Here(_)) => true,
            (0, Call::Anywhere) => {
                code.is_multiple_of(16) || walk.memory.bytes(code).is_some_and(code_signs::is_landing_pad)
            }
            (8, _) if has_pushed_fp => {
                walk.memory.bytes(code.wrapping_sub(1)).is_some_and(code_signs::is_push_of_frame_pointer)
            }
            (_, Call::Here(distance)) => distance < STUB,
            (_, Call::Anywhere) => false,
        };
        if is_sure {
            return Some(caller(return_address, sp.wrapping_add(pushed + 8), fp));
        }
    }
    None
}

/// Whether the code before `address` sets up a frame pointer.
fn keeps_frame_pointer(walk: &mut Walk<'_>, address: u64) -> bool {
    const REACH: usize = 1024;
    let before = walk.memory.bytes::<REACH>(address.wrapping_sub(REACH as u64));
    before.is_some_and(|code| code_signs::sets_up_frame_pointer(&code))
}

/// Where a linkage stub (PLT) at `target` leads.
fn through_linkage(walk: &mut Walk<'_>, target: u64) -> Option<u64> {
    let slot = code_signs::linkage_slot(&walk.memory.bytes(target)?, target)?;
    walk.memory.word(slot)
}

/// The kernel's signal frame, where the trampoline's stack pointer points to the context.
fn interrupted_by_signal(walk: &mut Walk<'_>, frame: &Frame) -> Result<Frame, StopReason> {
    let mut registers = Registers::default();
    for (number, word) in CONTEXT_WORDS.iter().enumerate() {
        let value = walk.memory.word(frame.registers.sp().wrapping_add(word * 8)).ok_or(StopReason::BadMemory)?;
        registers.set(number, Some(value));
    }
    if is_user_address(registers.pc()) { Ok(Frame::interrupted(&registers)) } else { Err(StopReason::BadMemory) }
}
