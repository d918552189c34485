//! gimli as a reader of a library's unwind tables: it searches the index, and its storage is not allocated.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, Error, FrameDescriptionEntry, LittleEndian,
    ParsedEhFrameHdr, Register, RegisterRule, UnwindContext, UnwindContextStorage, UnwindSection, UnwindTableRow,
    X86_64,
};

use super::made_up_stack::MadeUpStack;
use crate::peers::unwind_tables::{Bytes, UnwindTables};

type Slice = EndianSlice<'static, LittleEndian>;
type Entry = FrameDescriptionEntry<Slice>;
type Row = UnwindTableRow<usize, InPlace>;

/// Storage for the widest rows that compilers write: all 17 registers, a few nested states.
#[derive(Debug)]
pub(super) struct InPlace;

impl UnwindContextStorage<usize> for InPlace {
    type Rules = [(Register, RegisterRule<usize>); 24];
    type Stack = [UnwindTableRow<usize, Self>; 6];
}

/// A library's tables, parsed as far as possible in advance.
#[derive(Debug)]
pub(super) struct Tables {
    bases: BaseAddresses,
    index: ParsedEhFrameHdr<Slice>,
    entries: EhFrame<Slice>,
    context: UnwindContext<usize, InPlace>,
}

impl Tables {
    pub(super) fn new(tables: &UnwindTables) -> Result<Self, Error> {
        let address = |bytes: Bytes| bytes.as_ptr().expose_provenance() as u64;
        let (index, entries) = (tables.index.bytes, tables.entries.bytes);
        let bases = BaseAddresses::default().set_eh_frame_hdr(address(index)).set_eh_frame(address(entries));
        let index = EhFrameHdr::new(index, LittleEndian).parse(&bases, 8)?;
        Ok(Self { bases, index, entries: EhFrame::new(entries, LittleEndian), context: UnwindContext::new_in() })
    }

    /// Returns the start addresses of the index entries, one for each function.
    pub(super) fn functions(&self) -> Result<Vec<u64>, Error> {
        let table = self.index.table().ok_or(Error::NoUnwindInfoForAddress)?;
        let mut iter = table.iter(&self.bases);
        let mut functions = Vec::new();
        while let Some((start, _)) = iter.next()? {
            functions.push(start.direct()?);
        }
        Ok(functions)
    }

    pub(super) fn entry(&self, pc: u64) -> Result<Entry, Error> {
        let table = self.index.table().ok_or(Error::NoUnwindInfoForAddress)?;
        table.fde_for_address(&self.entries, &self.bases, pc, EhFrame::cie_from_offset)
    }

    pub(super) fn row(&mut self, pc: u64) -> Result<&Row, Error> {
        let table = self.index.table().ok_or(Error::NoUnwindInfoForAddress)?;
        table.unwind_info_for_address(&self.entries, &self.bases, &mut self.context, pc, EhFrame::cie_from_offset)
    }
}

/// Returns the stack slot of the return address of a made-up frame with this row. Returns `None` if the row needs more
/// than the stack pointer and the frame pointer, or has an expression, which might read anything.
pub(super) fn return_address_slot(row: &Row, stack: &MadeUpStack<'_>) -> Option<u64> {
    let is_expression = |rule: &RegisterRule<usize>| {
        matches!(rule, RegisterRule::Expression(_) | RegisterRule::ValExpression(_) | RegisterRule::ValOffset(_))
    };
    if row.registers().any(|(_, rule)| is_expression(rule)) {
        return None;
    }
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => {
            stack.stack_pointer().checked_add_signed(*offset)
        }
        CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => {
            stack.frame_pointer().checked_add_signed(*offset)
        }
        _ => None,
    };
    match row.register(X86_64::RA) {
        Some(RegisterRule::Offset(offset)) => cfa?.checked_add_signed(offset),
        _ => None,
    }
}
