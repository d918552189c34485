//! Unwind tables of arbitrary bytes: no fault may occur, and both ways of stepping must agree.

use stackweave_core::{CodeAddress, StopReason};

use super::arch::{Registers, dwarf};
use super::cfi::{Cie, Table, TableSection, rule_at};
use super::dwarf_step::{self, StepFailure};
use super::rule::{Rule, RuleKind};
use super::stack_memory::{KnownStacks, StackMemory};
use super::walk::WalkFrame;

/// A stack for steps: page-aligned, with known words, and not the thread's own.
#[repr(C, align(4096))]
struct FakeStack([u64; WORDS]);

const WORDS: usize = 1024;

/// Interprets `data` as `.eh_frame` (or `.eh_frame_hdr` and `.eh_frame`, depending on its first byte), and steps
/// from an address given by its second and third byte, by the compact rule and by the general evaluator.
///
/// # Panics
/// If both disagree.
pub fn step(data: &[u8]) {
    let [mode, low, high, bytes @ ..] = data else { return };
    // Use addresses near the section's own, so that pc-relative entries are hit often.
    let section = TableSection { bytes, address: 0x10_0000 };
    let pc = 0x10_0000 + u64::from(u16::from_le_bytes([*low, *high])) * 16;
    let table = if mode & 1 == 0 {
        Table::from_entries(section)
    } else {
        let Ok(table) = Table::from_header(section, section.address) else { return };
        table
    };
    let mut cie = Cie::NONE;
    let rule = rule_at(&table, pc, &mut cie);
    let Ok(Some(fde)) = table.find(pc, &mut cie) else { return };

    let stack = fake_stack();
    let base = core::ptr::from_ref(stack).expose_provenance() as u64;
    let frame = WalkFrame { address: CodeAddress::instruction_pointer(pc), sp: base + 8 * 64, fp: base + 8 * 256 };
    let general = step_generally(&section, fde.offset, frame);
    let compact = step_compactly(rule, frame);
    if let (Some(compact), Some(general)) = (compact, general) {
        assert_eq!(compact, general, "{rule:?}");
    }
}

/// Returns a stack whose words point back into the stack, so that saved registers are plausible.
fn fake_stack() -> &'static FakeStack {
    use std::sync::OnceLock;
    static STACK: OnceLock<Box<FakeStack>> = OnceLock::new();
    STACK.get_or_init(|| {
        let mut stack = Box::new(FakeStack([0; WORDS]));
        let base = core::ptr::from_ref(&*stack).expose_provenance() as u64;
        for (index, word) in stack.0.iter_mut().enumerate() {
            *word = base + 8 * ((index as u64 * 7 + 300) % WORDS as u64);
        }
        stack
    })
}

/// The result of a step, as far as both ways can compute it: return address, stack pointer, frame pointer.
type StepResult = (u64, u64, u64);

fn step_generally(
    section: &TableSection<'_>,
    entry: usize,
    frame: WalkFrame,
) -> Option<Result<StepResult, StopReason>> {
    let mut known = KnownStacks::new();
    let mut memory = StackMemory::new(&mut known);
    assert!(memory.enter(frame.sp));
    let registers = Registers::partial(frame.address.address(), frame.sp, frame.fp);
    match dwarf_step::step(section, entry, frame.address.lookup(), &registers, &mut memory) {
        Ok(stepped) if stepped.is_signal_frame => None,
        Ok(stepped) => {
            let fp = stepped.registers.get(dwarf::FRAME_POINTER as usize);
            // The frame pointer is unknown in the caller: the compact rule keeps the old one.
            let caller = (stepped.registers.pc(), stepped.registers.sp(), fp.unwrap_or(frame.fp));
            Some(Ok(caller))
        }
        Err(StepFailure::Stop(StopReason::EndOfStack)) => Some(Err(StopReason::EndOfStack)),
        Err(_) => None,
    }
}

/// Takes a plain step with an independent implementation.
fn step_compactly(rule: Rule, frame: WalkFrame) -> Option<Result<StepResult, StopReason>> {
    let mut known = KnownStacks::new();
    let mut memory = StackMemory::new(&mut known);
    assert!(memory.enter(frame.sp));
    let from = |base: u64| base.wrapping_add(rule.cfa_offset());
    let (cfa, fp) = match rule.kind() {
        RuleKind::End => return Some(Err(StopReason::EndOfStack)),
        RuleKind::Sp | RuleKind::Fp => {
            let cfa = from(if rule.kind() == RuleKind::Sp { frame.sp } else { frame.fp });
            let saved = rule.fp_offset();
            let fp = if saved == 0 { frame.fp } else { memory.read(cfa.wrapping_add(saved))? };
            (cfa, fp)
        }
        RuleKind::FpDeref => (memory.read(from(frame.fp))?, memory.read(frame.fp.wrapping_add(rule.fp_offset()))?),
        RuleKind::General | RuleKind::NoEntry | RuleKind::NoModule => return None,
    };
    let pc = memory.read(cfa.wrapping_sub(8))?;
    Some(if pc == 0 { Err(StopReason::EndOfStack) } else { Ok((pc, cfa, fp)) })
}
