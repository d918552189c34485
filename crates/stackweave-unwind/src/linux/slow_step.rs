//! Steps that no compact rule can take: general rows, signal frames, code without unwind entries.

use stackweave_core::{CodeAddress, StopReason};

use crate::platform::arch::{self, CallTarget, Registers, dwarf};
use crate::platform::cfi::{Cie, Malformed};
use crate::platform::general::{self, Failure, Stepped};
use crate::platform::last_stack::CAPACITY;
use crate::platform::registered_code;
use crate::platform::rule::{Kind, Rule};
use crate::platform::stack_memory::is_readable;
use crate::platform::walk::{Frame, Start, Walk};

type Result<T> = core::result::Result<T, StopReason>;

/// The caller of `frame`.
pub(crate) fn step(walk: &mut Walk<'_>, start: &Start<'_>, frame: Frame, rule: Rule) -> Result<Frame> {
    match rule.kind() {
        Kind::End => Err(StopReason::EndOfStack),
        Kind::General => step_generally(walk, start, frame),
        Kind::NoModule if has_libgcc_entry(start, frame) => step_generally(walk, start, frame),
        Kind::NoModule => step_without_entry(walk, frame, StopReason::NoModule),
        Kind::NoEntry => step_without_entry(walk, frame, StopReason::NoUnwindEntry),
        Kind::Sp | Kind::Fp | Kind::FpDeref => Err(StopReason::UnsupportedRule),
    }
}

fn has_libgcc_entry(start: &Start<'_>, frame: Frame) -> bool {
    !start.in_signal_handler() && registered_code::libgcc_entry(frame.address.lookup()).is_some()
}

/// A general step with what the compact walk knows; if that is too little, with all registers,
/// followed from the start of the walk.
fn step_generally(walk: &mut Walk<'_>, start: &Start<'_>, frame: Frame) -> Result<Frame> {
    walk.counts.general += 1;
    let partial = Registers::partial(frame.address.address(), frame.sp, frame.fp);
    let stepped = match evaluate(walk, start, frame.address, &partial) {
        Err(Failure::MissingRegister) => {
            let all = follow_registers(walk, start, frame)?;
            evaluate(walk, start, frame.address, &all)
        }
        other => other,
    };
    match stepped {
        Ok(stepped) => enter_caller(walk, frame.sp, &stepped),
        Err(Failure::Stop(reason)) => Err(reason),
        Err(Failure::MissingRegister) => Err(StopReason::UnsupportedRule),
    }
}

/// All registers that can be known at `target`, by general steps from the first frame.
fn follow_registers(walk: &mut Walk<'_>, start: &Start<'_>, target: Frame) -> Result<Registers> {
    let mut registers = start.registers();
    let mut frame = start.first;
    if !walk.memory.enter(frame.sp) {
        return Err(StopReason::BadMemory);
    }
    for _ in 0..CAPACITY {
        if (frame.address, frame.sp) == (target.address, target.sp) {
            return Ok(registers);
        }
        if let Ok(stepped) = evaluate(walk, start, frame.address, &registers) {
            frame = enter_caller(walk, frame.sp, &stepped)?;
            registers = stepped.registers;
        } else {
            frame = step_without_entry(walk, frame, StopReason::UnsupportedRule)?;
            registers = Registers::partial(frame.address.address(), frame.sp, frame.fp);
        }
    }
    Err(StopReason::DepthLimit)
}

/// A general step by the unwind entry that holds `address`, wherever that is.
fn evaluate(
    walk: &mut Walk<'_>,
    start: &Start<'_>,
    address: CodeAddress,
    registers: &Registers,
) -> core::result::Result<Stepped, Failure> {
    let pc = address.lookup();
    let memory = &mut walk.memory;
    let missing = |found: core::result::Result<Option<usize>, Malformed>| match found {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => Err(Failure::Stop(StopReason::NoUnwindEntry)),
        Err(Malformed) => Err(Failure::Stop(StopReason::UnsupportedRule)),
    };
    if let Some(table) = walk.lookup.table(pc) {
        let entry = missing(walk.lookup.entry_offset(&table, pc))?;
        return general::step(&table.section, entry, pc, registers, memory);
    }
    let registered = registered_code::with_entries(pc, |table| {
        let found = table.find(pc, &mut { Cie::NONE });
        let entry = missing(found.map(|fde| fde.map(|fde| fde.offset)))?;
        general::step(&table.section, entry, pc, registers, memory)
    });
    if let Some(result) = registered {
        return result;
    }
    let libgcc = if start.in_signal_handler() { None } else { registered_code::libgcc_entry(pc) };
    let (section, entry) = libgcc.ok_or(Failure::Stop(StopReason::NoUnwindEntry))?;
    general::step(&section, entry, pc, registers, &mut walk.memory)
}

/// Checks the caller that a general step found, and makes its stack the one being read.
fn enter_caller(walk: &mut Walk<'_>, sp: u64, stepped: &Stepped) -> Result<Frame> {
    let registers = &stepped.registers;
    let fp = registers.get(dwarf::FRAME_POINTER as usize).unwrap_or(0);
    let frame = |address| Frame { address, sp: registers.sp(), fp };
    if stepped.is_signal_frame {
        return enter_interrupted(walk, frame(CodeAddress::instruction_pointer(registers.pc())));
    }
    let is_above = registers.sp() >= sp + 8 && walk.memory.reaches(registers.sp());
    if is_above { Ok(frame(CodeAddress::return_address(registers.pc()))) } else { Err(StopReason::BadMemory) }
}

/// The interrupted code may run on any stack, above or below the handler's.
fn enter_interrupted(walk: &mut Walk<'_>, frame: Frame) -> Result<Frame> {
    if walk.memory.enter(frame.sp) { Ok(frame) } else { Err(StopReason::BadMemory) }
}

/// The caller of a frame that no unwind entry covers, if it can be told with confidence: a signal
/// trampoline, a function that has not touched its stack yet, or one that keeps a frame pointer.
fn step_without_entry(walk: &mut Walk<'_>, frame: Frame, reason: StopReason) -> Result<Frame> {
    let code = frame.address.address();
    if !frame.address.is_exact() && read_code::<9>(code).is_some_and(|code| arch::is_signal_return(&code)) {
        return step_signal_return(walk, frame);
    }
    if frame.address.is_exact() {
        // At a function's first instruction the return address is on top of the stack; after
        // `push %rbp` it lies above the caller's frame pointer.
        if let Some(caller) = caller_at(walk, frame, frame.sp, frame.fp) {
            return Ok(caller);
        }
        if walk.memory.read(frame.sp) == Some(frame.fp)
            && let Some(caller) = caller_at(walk, frame, frame.sp + 8, frame.fp)
        {
            return Ok(caller);
        }
    }
    if frame.fp < frame.sp || !frame.fp.is_multiple_of(8) {
        return Err(reason);
    }
    let Some(callers_fp) = walk.memory.read(frame.fp) else { return Err(reason) };
    caller_at(walk, frame, frame.fp + 8, callers_fp).ok_or(reason)
}

/// The caller of `frame` if `slot` holds its return address: the address of an instruction after a
/// call, which, if it is a direct one, leads to this very frame's function. A call that leads to code
/// with an unwind entry of its own means that frames between have been passed over.
fn caller_at(walk: &mut Walk<'_>, frame: Frame, slot: u64, fp: u64) -> Option<Frame> {
    const LONGEST_FUNCTION: u64 = 1 << 20;
    let return_address = walk.memory.read(slot)?;
    let before = read_code::<7>(return_address.checked_sub(7)?)?;
    if let CallTarget::Direct(target) = arch::call_before(before, return_address)? {
        let target = through_linkage(target).unwrap_or(target);
        let distance = frame.address.address().wrapping_sub(target);
        if distance >= LONGEST_FUNCTION || walk.lookup.has_entry(target) {
            return None;
        }
    }
    Some(Frame { address: CodeAddress::return_address(return_address), sp: slot + 8, fp })
}

/// Where a linkage stub (PLT) at `target` leads.
fn through_linkage(target: u64) -> Option<u64> {
    let slot = arch::linkage_slot(&read_code::<11>(target)?, target)?;
    Some(u64::from_le_bytes(read_code::<8>(slot)?))
}

/// The kernel's signal frame, where the trampoline's stack pointer points to the context.
fn step_signal_return(walk: &mut Walk<'_>, frame: Frame) -> Result<Frame> {
    let words = size_of::<libc::ucontext_t>() as u64;
    if !walk.memory.reaches(frame.sp + words) {
        return Err(StopReason::BadMemory);
    }
    let context = core::ptr::with_exposed_provenance::<libc::ucontext_t>(frame.sp as usize);
    // SAFETY: the whole context is readable, as just checked; alignment is that of u64.
    let registers = unsafe { Registers::from_context(context) };
    let interrupted =
        Frame { address: CodeAddress::instruction_pointer(registers.pc()), sp: registers.sp(), fp: registers.fp() };
    enter_interrupted(walk, interrupted)
}

/// Bytes of code, if they can be read.
fn read_code<const N: usize>(address: u64) -> Option<[u8; N]> {
    let last = address.checked_add(N as u64)?.checked_sub(8)?;
    if address >> 47 != 0 || !is_readable(address) || !is_readable(last) {
        return None;
    }
    let pointer = core::ptr::with_exposed_provenance::<[u8; N]>(address as usize);
    // SAFETY: both ends are readable, and the bytes span at most two pages.
    Some(unsafe { pointer.read_unaligned() })
}
