//! Steps that compact rules cannot express: general rows, signal frames, code registered with libgcc.

use stackweave_core::{CodeAddress, StopReason};

use crate::platform::arch::Registers;
use crate::platform::cfi::{Cie, Malformed};
use crate::platform::dwarf_step::{self, StepFailure};
use crate::platform::last_stack::CAPACITY;
use crate::platform::registered_code;
use crate::platform::rule::{Rule, RuleKind};
use crate::platform::step_without_entry;
use crate::platform::stepping::Stepped;
use crate::platform::walk::{Walk, WalkFrame, WalkStart};

type Result<T> = core::result::Result<T, StopReason>;

/// Finds the caller of `frame`.
pub(crate) fn step(walk: &mut Walk<'_>, start: &WalkStart<'_>, frame: WalkFrame, rule: Rule) -> Result<WalkFrame> {
    match rule.kind() {
        RuleKind::End => Err(StopReason::EndOfStack),
        RuleKind::General => step_generally(walk, start, frame),
        RuleKind::NoModule if has_libgcc_entry(start, frame) => step_generally(walk, start, frame),
        RuleKind::NoModule => step_without_entry(walk, frame, StopReason::NoModule),
        RuleKind::NoEntry => step_without_entry(walk, frame, StopReason::NoUnwindEntry),
        RuleKind::Sp | RuleKind::Fp | RuleKind::FpDeref => Err(StopReason::UnsupportedRule),
    }
}

fn has_libgcc_entry(start: &WalkStart<'_>, frame: WalkFrame) -> bool {
    !start.in_signal_handler() && registered_code::libgcc_entry(frame.address.lookup()).is_some()
}

/// Takes a general step with the registers that the compact walk knows; if these are not sufficient, with all
/// registers, followed from the start of the walk.
fn step_generally(walk: &mut Walk<'_>, start: &WalkStart<'_>, frame: WalkFrame) -> Result<WalkFrame> {
    walk.counts.general += 1;
    let partial = Registers::partial(frame.address.address(), frame.sp, frame.fp);
    let stepped = match evaluate(walk, start, frame.address, &partial) {
        Err(StepFailure::MissingRegister) => {
            let all = follow_registers(walk, start, frame)?;
            evaluate(walk, start, frame.address, &all)
        }
        other => other,
    };
    match stepped {
        Ok(stepped) => enter_caller(walk, frame.sp, &stepped),
        Err(StepFailure::Stop(reason)) => Err(reason),
        Err(StepFailure::MissingRegister) => Err(StopReason::UnsupportedRule),
    }
}

/// Takes a step through code that no unwind entry covers, for this reason.
fn step_without_entry(walk: &mut Walk<'_>, frame: WalkFrame, reason: StopReason) -> Result<WalkFrame> {
    let registers = Registers::partial(frame.address.address(), frame.sp, frame.fp);
    let Walk { memory, lookup, .. } = walk;
    let end_of_entry = |address| lookup.end_of_entry(address);
    let stepped = step_without_entry::step(memory, end_of_entry, frame.address, &registers, reason)?;
    enter_caller(walk, frame.sp, &stepped)
}

/// Returns all registers that can be known at `target`, by general steps from the first frame.
fn follow_registers(walk: &mut Walk<'_>, start: &WalkStart<'_>, target: WalkFrame) -> Result<Registers> {
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

/// Takes a general step by the unwind entry for `address`, from any source.
fn evaluate(
    walk: &mut Walk<'_>,
    start: &WalkStart<'_>,
    address: CodeAddress,
    registers: &Registers,
) -> core::result::Result<Stepped, StepFailure> {
    let pc = address.lookup();
    let memory = &mut walk.memory;
    let missing = |found: core::result::Result<Option<usize>, Malformed>| match found {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => Err(StepFailure::Stop(StopReason::NoUnwindEntry)),
        Err(Malformed) => Err(StepFailure::Stop(StopReason::UnsupportedRule)),
    };
    if let Some(table) = walk.lookup.table(pc) {
        let entry = missing(walk.lookup.entry_offset(&table, pc))?;
        return dwarf_step::step(&table.section, entry, pc, registers, memory);
    }
    let registered = registered_code::with_entries(pc, |table| {
        let found = table.find(pc, &mut { Cie::NONE });
        let entry = missing(found.map(|fde| fde.map(|fde| fde.offset)))?;
        dwarf_step::step(&table.section, entry, pc, registers, memory)
    });
    if let Some(result) = registered {
        return result;
    }
    let libgcc = if start.in_signal_handler() { None } else { registered_code::libgcc_entry(pc) };
    let (section, entry) = libgcc.ok_or(StepFailure::Stop(StopReason::NoUnwindEntry))?;
    dwarf_step::step(&section, entry, pc, registers, &mut walk.memory)
}

/// Checks the caller that a step found, and enters its stack.
fn enter_caller(walk: &mut Walk<'_>, sp: u64, stepped: &Stepped) -> Result<WalkFrame> {
    let registers = &stepped.registers;
    let is_readable = if stepped.is_signal_frame {
        // The interrupted code may run on any stack, above or below the handler's.
        walk.memory.enter(registers.sp())
    } else {
        registers.sp() >= sp + 8 && walk.memory.reaches(registers.sp())
    };
    let frame = WalkFrame { address: stepped.address(), sp: registers.sp(), fp: registers.fp() };
    if is_readable { Ok(frame) } else { Err(StopReason::BadMemory) }
}
