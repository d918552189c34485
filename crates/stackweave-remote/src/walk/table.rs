//! From an address to its unwind entry, and from that to the caller's registers: all registers, all rules, expressions.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, Evaluation, EvaluationResult, FrameDescriptionEntry,
    LittleEndian, Pointer, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection as _, UnwindTableRow,
    Value,
};
use stackweave_core::StopReason;

use super::registers::{CALLEE_SAVED, RETURN_ADDRESS, Registers, STACK_POINTER};
use crate::image::Image;
use crate::stack_memory::StillMemory;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = FrameDescriptionEntry<Bytes<'a>>;

/// The unwind tables of a module, by stated addresses.
pub(super) struct Tables<'a> {
    header: gimli::ParsedEhFrameHdr<Bytes<'a>>,
    entries: EhFrame<Bytes<'a>>,
    bases: BaseAddresses,
}

/// The caller's registers, and whether the frame was a signal trampoline.
pub(super) struct Stepped {
    pub(super) registers: Registers,
    pub(super) is_signal_frame: bool,
}

/// More operations than any sane expression has: a loop in one ends here.
const MAX_OPERATIONS: u32 = 256;

impl<'a> Tables<'a> {
    /// Those of a module, if it has any.
    pub(super) fn of(image: &'a Image) -> Option<Self> {
        let address = image.unwind_header?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(address);
        let header = EhFrameHdr::new(image.at(address)?, LittleEndian).parse(&bases, 8).ok()?;
        let Pointer::Direct(start) = header.eh_frame_ptr() else { return None };
        let entries = EhFrame::new(image.at(start)?, LittleEndian);
        Some(Self { header, entries, bases: bases.set_eh_frame(start) })
    }

    /// Where the entry that covers this address ends.
    pub(super) fn end_of_entry(&self, stated: u64) -> Option<u64> {
        self.entry(stated).ok().flatten().map(|entry| entry.end_address())
    }

    /// The entry that covers this address.
    fn entry(&self, stated: u64) -> Result<Option<Entry<'a>>, StopReason> {
        let found = match self.header.table() {
            Some(table) => table.lookup(stated, &self.bases).and_then(|pointer| {
                let offset = table.pointer_to_offset(pointer)?;
                self.entries.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset)
            }),
            None => self.entries.fde_for_address(&self.bases, stated, EhFrame::cie_from_offset),
        };
        match found {
            Ok(entry) => Ok(entry.contains(stated).then_some(entry)),
            Err(gimli::Error::NoUnwindInfoForAddress) => Ok(None),
            Err(_) => Err(StopReason::UnsupportedRule),
        }
    }

    /// The caller of the frame that `registers` describe, which is at a stated address.
    pub(super) fn step(
        &self,
        stated: u64,
        registers: &Registers,
        memory: &mut StillMemory,
    ) -> Result<Stepped, StopReason> {
        let entry = self.entry(stated)?.ok_or(StopReason::NoUnwindEntry)?;
        let mut context = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(&self.entries, &self.bases, &mut context, stated)
            .map_err(|_| StopReason::UnsupportedRule)?;
        let mut frame = Frame { entries: self.entries, encoding: entry.cie().encoding(), registers, memory };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                frame.register(*register)?.wrapping_add(offset.cast_unsigned())
            }
            CfaRule::Expression(expression) => frame.evaluate(expression, None)?,
        };
        Ok(Stepped { registers: frame.callers(row, cfa)?, is_signal_frame: entry.is_signal_trampoline() })
    }
}

/// The frame being stepped from.
struct Frame<'a, 'm> {
    entries: EhFrame<Bytes<'a>>,
    encoding: gimli::Encoding,
    registers: &'m Registers,
    memory: &'m mut StillMemory,
}

impl Frame<'_, '_> {
    fn register(&self, register: Register) -> Result<u64, StopReason> {
        self.registers.get(usize::from(register.0)).ok_or(StopReason::UnsupportedRule)
    }

    fn read(&mut self, address: u64) -> Result<u64, StopReason> {
        self.memory.word(address).ok_or(StopReason::BadMemory)
    }

    /// Applies the row's rules to every register.
    fn callers(&mut self, row: &UnwindTableRow<usize>, cfa: u64) -> Result<Registers, StopReason> {
        let mut callers = Registers::default();
        for number in CALLEE_SAVED {
            callers.set(number, self.registers.get(number));
        }
        callers.set(STACK_POINTER, Some(cfa));
        for (register, rule) in row.registers() {
            let number = usize::from(register.0);
            match self.apply(rule, number, cfa) {
                Ok(value) => callers.set(number, value),
                Err(reason) if matches!(number, RETURN_ADDRESS | STACK_POINTER) => return Err(reason),
                Err(_) => callers.set(number, None),
            }
        }
        match callers.get(RETURN_ADDRESS) {
            None | Some(0) => Err(StopReason::EndOfStack),
            Some(address) if super::is_user_address(address) => Ok(callers),
            Some(_) => Err(StopReason::BadMemory),
        }
    }

    /// One register's value in the caller; `None`: not known there.
    fn apply(&mut self, rule: &RegisterRule<usize>, number: usize, cfa: u64) -> Result<Option<u64>, StopReason> {
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
            RegisterRule::Architectural => return Err(StopReason::UnsupportedRule),
        })
    }

    fn evaluate(&mut self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Result<u64, StopReason> {
        let unsupported = |_| StopReason::UnsupportedRule;
        let bytecode = expression.get(&self.entries).map_err(unsupported)?.0;
        let mut evaluation = Evaluation::new(bytecode, self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(value) = initial {
            evaluation.set_initial_value(value);
        }
        let mut result = evaluation.evaluate().map_err(unsupported)?;
        loop {
            let resumed = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.read(address)?))
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?))
                }
                _ => return Err(StopReason::UnsupportedRule),
            };
            result = resumed.map_err(unsupported)?;
        }
        match evaluation.as_result() {
            [gimli::Piece { location: gimli::Location::Address { address }, .. }] => Ok(*address),
            _ => Err(StopReason::UnsupportedRule),
        }
    }
}
