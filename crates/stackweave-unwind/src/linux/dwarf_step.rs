//! The step for every row that DWARF can express: all registers, all rules, expressions.
//!
//! Reads the same entry as the fast reader, but with gimli and with storage on the stack: no allocation.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, Encoding, EndianSlice, Evaluation, EvaluationResult,
    EvaluationStorage, LittleEndian, Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression,
    UnwindSection, UnwindTableRow, Value,
};
use stackweave_core::StopReason;

use crate::platform::arch::{Registers, dwarf, is_user_address};
use crate::platform::cfi::TableSection;
use crate::platform::stepping::{ReadMemory, Stepped};

/// The reason why a general step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepFailure {
    /// The row needs a register that is unknown: a walk with all registers may know it.
    MissingRegister,
    Stop(StopReason),
}

impl From<gimli::Error> for StepFailure {
    fn from(_: gimli::Error) -> Self {
        Self::Stop(StopReason::UnsupportedRule)
    }
}

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Sizes for the largest rows that compilers write: all 17 registers, two nested states.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); 24];
    type Stack = [UnwindTableRow<usize, Self>; 6];
}

impl<'a> EvaluationStorage<Bytes<'a>> for OnStack {
    type Stack = [Value; 32];
    type ExpressionStack = [(Bytes<'a>, Bytes<'a>); 2];
    type Result = [gimli::Piece<Bytes<'a>>; 1];
}

/// The maximum number of operations of an expression, which ends loops in it.
const MAX_OPERATIONS: u32 = 256;

/// Finds the caller of the frame that `registers` describe, whose entry is at `entry` in `section`. `pc` is the
/// address to look up.
#[inline(never)]
pub(crate) fn step(
    section: &TableSection<'_>,
    entry: usize,
    pc: u64,
    registers: &Registers,
    memory: &mut impl ReadMemory,
) -> Result<Stepped, StepFailure> {
    let eh_frame = EhFrame::new(section.bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.address);
    let fde = eh_frame.fde_from_offset(&bases, EhFrameOffset(entry), EhFrame::cie_from_offset)?;
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = fde.unwind_info_for_address(&eh_frame, &bases, &mut context, pc)?;

    let mut frame = CfiFrame { entries: eh_frame, encoding: fde.cie().encoding(), registers, memory };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            frame.register(*register)?.wrapping_add(offset.cast_unsigned())
        }
        CfaRule::Expression(expression) => frame.evaluate(expression, None)?,
    };
    let is_signal_frame = fde.is_signal_trampoline();
    let registers = frame.callers(row, cfa)?;
    Ok(Stepped { registers, is_signal_frame })
}

/// The frame whose caller is computed.
struct CfiFrame<'a, 'm, M> {
    entries: EhFrame<Bytes<'a>>,
    encoding: Encoding,
    registers: &'m Registers,
    memory: &'m mut M,
}

impl<M: ReadMemory> CfiFrame<'_, '_, M> {
    fn register(&self, register: Register) -> Result<u64, StepFailure> {
        self.registers.get(usize::from(register.0)).ok_or(StepFailure::MissingRegister)
    }

    fn read(&mut self, address: u64) -> Result<u64, StepFailure> {
        self.memory.word(address).ok_or(StepFailure::Stop(StopReason::BadMemory))
    }

    /// Applies the row's rules to every register.
    fn callers(&mut self, row: &UnwindTableRow<usize, OnStack>, cfa: u64) -> Result<Registers, StepFailure> {
        let mut callers = Registers::default();
        for (number, current) in self.registers.values.iter().enumerate() {
            if dwarf::CALLEE_SAVED >> number & 1 != 0 && self.registers.known >> number & 1 != 0 {
                callers.set(number, Some(*current));
            }
        }
        callers.set(dwarf::STACK_POINTER as usize, Some(cfa));
        for (register, rule) in row.registers() {
            let number = usize::from(register.0);
            if number >= dwarf::COUNT {
                continue;
            }
            let is_needed = number as u64 == dwarf::RETURN_ADDRESS || number as u64 == dwarf::STACK_POINTER;
            match self.apply(rule, number, cfa) {
                Ok(value) => callers.set(number, value),
                Err(failure) if is_needed => return Err(failure),
                Err(_) => callers.set(number, None),
            }
        }
        match callers.get(dwarf::RETURN_ADDRESS as usize) {
            None | Some(0) => Err(StepFailure::Stop(StopReason::EndOfStack)),
            Some(address) if is_user_address(address) => Ok(callers),
            Some(_) => Err(StepFailure::Stop(StopReason::BadMemory)),
        }
    }

    /// Returns a register's value in the caller; `None` if it is unknown there.
    fn apply(&mut self, rule: &RegisterRule<usize>, number: usize, cfa: u64) -> Result<Option<u64>, StepFailure> {
        let at = |offset: &i64| cfa.wrapping_add(offset.cast_unsigned());
        Ok(match rule {
            RegisterRule::Undefined => None,
            RegisterRule::SameValue => self.registers.get(number),
            RegisterRule::Offset(offset) => Some(self.read(at(offset))?),
            RegisterRule::ValOffset(offset) => Some(at(offset)),
            RegisterRule::Register(other) => self.registers.get(usize::from(other.0)),
            RegisterRule::Expression(expression) => {
                let address = self.evaluate(expression, Some(cfa))?;
                Some(self.read(address)?)
            }
            RegisterRule::ValExpression(expression) => Some(self.evaluate(expression, Some(cfa))?),
            RegisterRule::Constant(value) => Some(*value),
            RegisterRule::Architectural => return Err(StepFailure::Stop(StopReason::UnsupportedRule)),
        })
    }

    fn evaluate(&mut self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Result<u64, StepFailure> {
        let bytecode = expression.get(&self.entries)?.0;
        let mut evaluation = Evaluation::<_, OnStack>::new_in(bytecode, self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(value) = initial {
            evaluation.set_initial_value(value);
        }
        let mut result = evaluation.evaluate()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    let value = self.read(address)?;
                    evaluation.resume_with_memory(Value::Generic(value))?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.register(register)?;
                    evaluation.resume_with_register(Value::Generic(value))?
                }
                _ => return Err(StepFailure::Stop(StopReason::UnsupportedRule)),
            };
        }
        match evaluation.as_result() {
            [gimli::Piece { location: gimli::Location::Address { address }, .. }] => Ok(*address),
            _ => Err(StepFailure::Stop(StopReason::UnsupportedRule)),
        }
    }
}
