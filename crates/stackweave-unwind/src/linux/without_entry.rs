//! Code that no unwind entry covers: hand-written assembly, linkage stubs, generated code.
//!
//! There is no table to read, only signs. A step is taken when they agree that it is the right one: a wrong
//! frame is worse than a stack that ends early. Asks the kernel before it reads code.

use stackweave_core::code_signs::{self, CallTarget};
use stackweave_core::{CodeAddress, StopReason};

use crate::platform::arch::{self, Registers};
use crate::platform::slow_step::enter_interrupted;
use crate::platform::stack_memory::is_readable;
use crate::platform::walk::{self, Frame, Walk};

/// The caller of `frame`, or `reason` if there is no telling: a signal trampoline, a function that has
/// hardly touched its stack, or one that keeps a frame pointer.
pub(crate) fn step(walk: &mut Walk<'_>, frame: Frame, reason: StopReason) -> Result<Frame, StopReason> {
    let code = frame.address.address();
    if frame.address.is_exact() {
        if let Some(caller) = caller_near_top(walk, frame) {
            return Ok(caller);
        }
    } else if read_code::<9>(code).is_some_and(|code| code_signs::is_signal_return(&code)) {
        return step_signal_return(walk, frame);
    }
    let is_plausible = frame.fp >= frame.sp && frame.fp.is_multiple_of(8) && arch::is_user_address(frame.fp);
    if !is_plausible {
        return Err(reason);
    }
    let Some((return_address, call)) = call_at(walk, frame, frame.fp + 8) else { return Err(reason) };
    // Generated code is called through pointers; code of a module must show that it keeps a frame pointer.
    let is_sure = call != Call::Anywhere || reason == StopReason::NoModule || keeps_frame_pointer(code);
    let callers_fp = walk.memory.read(frame.fp).ok_or(reason)?;
    if is_sure { walk::caller(return_address, frame.fp + 16, callers_fp) } else { Err(reason) }
}

/// What a call instruction tells of the frame that may return behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// It leads this many bytes before the frame's own code.
    Here(u64),
    /// It leads wherever a register or memory said.
    Anywhere,
}

/// The word at `slot` and the call before it, if it can be the return address of `frame`. A direct call
/// must lead to code near the frame's own, without an unwind entry as that is; otherwise frames in
/// between would be passed over.
fn call_at(walk: &mut Walk<'_>, frame: Frame, slot: u64) -> Option<(u64, Call)> {
    const LONGEST_FUNCTION: u64 = 1 << 20;
    let return_address = walk.memory.read(slot)?;
    let before = read_code::<7>(return_address.checked_sub(7)?)?;
    let CallTarget::Direct(target) = code_signs::call_before(before, return_address)? else {
        return Some((return_address, Call::Anywhere));
    };
    let mut is_led_here = |target: u64| {
        let distance = frame.address.address().wrapping_sub(target);
        (distance < LONGEST_FUNCTION && !walk.lookup.has_entry(target)).then_some(distance)
    };
    let distance = is_led_here(target).or_else(|| is_led_here(through_linkage(target)?))?;
    Some((return_address, Call::Here(distance)))
}

/// The caller of interrupted code that has hardly touched its stack: at a function's first instruction the
/// return address is on top; after `push %rbp` it lies above the caller's frame pointer; in a linkage stub,
/// above what the stub pushed.
fn caller_near_top(walk: &mut Walk<'_>, frame: Frame) -> Option<Frame> {
    const STUB: u64 = 16;
    let Frame { sp, fp, .. } = frame;
    let code = frame.address.address();
    let has_pushed_fp = walk.memory.read(sp) == Some(fp);
    for pushed in [0, 8, 16] {
        let Some((return_address, call)) = call_at(walk, frame, sp + pushed) else { continue };
        let is_sure = match (pushed, call) {
            (0, Call::Here(_)) => true,
            (0, Call::Anywhere) => code.is_multiple_of(16) || read_code(code).is_some_and(code_signs::is_landing_pad),
            (8, _) if has_pushed_fp => read_code(code - 1).is_some_and(code_signs::is_push_of_frame_pointer),
            (_, Call::Here(distance)) => distance < STUB,
            (_, Call::Anywhere) => false,
        };
        if is_sure {
            return walk::caller(return_address, sp + pushed + 8, fp).ok();
        }
    }
    None
}

/// Whether the code before `address` sets up a frame pointer.
fn keeps_frame_pointer(address: u64) -> bool {
    const REACH: usize = 1024;
    let Some(code) = read_code::<REACH>(address.wrapping_sub(REACH as u64)) else { return false };
    code_signs::sets_up_frame_pointer(&code)
}

/// Where a linkage stub (PLT) at `target` leads.
fn through_linkage(target: u64) -> Option<u64> {
    let slot = code_signs::linkage_slot(&read_code::<11>(target)?, target)?;
    Some(u64::from_le_bytes(read_code::<8>(slot)?))
}

/// The kernel's signal frame, where the trampoline's stack pointer points to the context.
fn step_signal_return(walk: &mut Walk<'_>, frame: Frame) -> Result<Frame, StopReason> {
    if !walk.memory.reaches(frame.sp + size_of::<libc::ucontext_t>() as u64) {
        return Err(StopReason::BadMemory);
    }
    let context = core::ptr::with_exposed_provenance::<libc::ucontext_t>(frame.sp as usize);
    // SAFETY: the whole context is readable, as just checked.
    let registers = unsafe { Registers::from_context(&context.read_unaligned()) };
    let address = CodeAddress::instruction_pointer(registers.pc());
    enter_interrupted(walk, Frame { address, sp: registers.sp(), fp: registers.fp() })
}

/// Bytes of code, if they can be read: at most a page of them.
fn read_code<const N: usize>(address: u64) -> Option<[u8; N]> {
    let last = address.checked_add(N as u64)?.checked_sub(8)?;
    if last >> 47 != 0 || !is_readable(address) || !is_readable(last) {
        return None;
    }
    let pointer = core::ptr::with_exposed_provenance::<[u8; N]>(address as usize);
    // SAFETY: both ends are readable, and the bytes span at most two pages.
    Some(unsafe { pointer.read_unaligned() })
}
