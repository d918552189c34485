//! Compares the fast reader with gimli, for every row of every module in this process.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian, RegisterRule, UnwindContext,
    UnwindExpression, UnwindSection, UnwindTableRow,
};

use super::{Cie, Table, TableSection, rule_at};
use crate::platform::arch::dwarf;
use crate::platform::loader;
use crate::platform::rule::{Rule, RuleKind};

type Bytes = EndianSlice<'static, LittleEndian>;
type Row = UnwindTableRow<usize>;

const FP: gimli::Register = gimli::X86_64::RBP;
const SP: gimli::Register = gimli::X86_64::RSP;
const RA: gimli::Register = gimli::X86_64::RA;

/// Calls `visit` for each row of the module that contains `pc`.
fn for_each_row(table: &Table<'static>, mut visit: impl FnMut(&EhFrame<Bytes>, &Row, bool)) {
    let entries = &table.section.bytes[table.entries..];
    let eh_frame = EhFrame::new(entries, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(table.section.address + table.entries as u64);
    let mut iterator = eh_frame.entries(&bases);
    let mut context = UnwindContext::new();
    while let Ok(Some(entry)) = iterator.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        let mut rows = fde.rows(&eh_frame, &bases, &mut context).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            visit(&eh_frame, row, fde.is_signal_trampoline());
        }
    }
}

/// Returns an expression's bytes.
fn bytes(eh_frame: &EhFrame<Bytes>, expression: &UnwindExpression<usize>) -> &'static [u8] {
    expression.get(eh_frame).unwrap().0.slice()
}

/// Parses `*(rbp + n)` or `rbp + n`, an expression with a one-byte offset.
fn rbp_offset(expression: &[u8]) -> Option<(i64, &[u8])> {
    let [0x76, offset, rest @ ..] = expression else { return None };
    let signed = (i64::from(*offset) << 57) >> 57;
    (offset & 0x80 == 0).then_some((signed, rest))
}

/// Returns the compact rule that corresponds to gimli's row.
fn expected(eh_frame: &EhFrame<Bytes>, row: &Row, is_signal_frame: bool) -> Rule {
    let general = Rule::of(RuleKind::General);
    let find = |register| row.registers().find(|(number, _)| *number == register).map(|(_, rule)| rule.clone());
    let fp = find(FP).unwrap_or(RegisterRule::SameValue);
    if is_signal_frame {
        return general;
    }
    if find(RA).is_some_and(|rule| rule != RegisterRule::Undefined) && find(SP).is_some() {
        return general;
    }
    match find(RA) {
        None | Some(RegisterRule::Undefined) => return Rule::of(RuleKind::End),
        Some(RegisterRule::Offset(-8)) => {}
        Some(_) => return general,
    }
    match (row.cfa(), fp) {
        (CfaRule::RegisterAndOffset { register, offset }, fp) if *register == SP || *register == FP => {
            let kind = if *register == SP { RuleKind::Sp } else { RuleKind::Fp };
            match fp {
                RegisterRule::SameValue | RegisterRule::Undefined => Rule::with_offsets(kind, *offset, 0),
                RegisterRule::Offset(at) => Rule::with_offsets(kind, *offset, at),
                _ => general,
            }
        }
        (CfaRule::Expression(cfa), RegisterRule::Expression(saved)) => {
            match (rbp_offset(bytes(eh_frame, cfa)), rbp_offset(bytes(eh_frame, &saved))) {
                (Some((cfa, [0x06])), Some((saved, []))) => Rule::with_offsets(RuleKind::FpDeref, cfa, saved),
                _ => general,
            }
        }
        _ => general,
    }
}

fn agrees_with_gimli(pc: u64) -> usize {
    let table = loader::find_module(pc).and_then(|module| module.table).expect("a module with a table");
    let mut last = Cie::NONE;
    let mut rows = 0;
    for_each_row(&table, |eh_frame, row, is_signal_frame| {
        rows += 1;
        let expected = expected(eh_frame, row, is_signal_frame);
        for pc in [row.start_address(), row.end_address() - 1] {
            let rule = rule_at(&table, pc, &mut last);
            assert_eq!(rule, expected, "at {pc:#x}: {row:?}");
        }
    });
    rows
}

/// Returns the address of a symbol in a library, which is loaded for this and remains loaded.
fn symbol(library: &core::ffi::CStr, name: &core::ffi::CStr) -> Option<u64> {
    // SAFETY: loads a system library, which has no side effects.
    let address = unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        if handle.is_null() {
            return None;
        }
        libc::dlsym(handle, name.as_ptr())
    };
    (!address.is_null()).then_some(address.addr() as u64)
}

#[test]
fn every_row_of_this_process_compiles_as_gimli_reads_it() {
    loader::prepare();
    let this = agrees_with_gimli(agrees_with_gimli as *const () as u64);
    assert!(this > 1_000, "{this} rows");
    for (library, name) in [
        (c"libc.so.6", c"strlen"),
        (c"libc.so.6", c"__tls_get_addr"),
        (c"libgcc_s.so.1", c"_Unwind_Backtrace"),
        (c"libm.so.6", c"sin"),
    ] {
        let rows = agrees_with_gimli(symbol(library, name).unwrap_or_else(|| panic!("no {name:?} in {library:?}")));
        assert!(rows > 100, "{library:?}: {rows} rows");
    }
    for (library, name) in [(c"libstdc++.so.6", c"__cxa_throw"), (c"libcrypto.so.3", c"EVP_MD_CTX_new")] {
        if let Some(pc) = symbol(library, name) {
            assert!(agrees_with_gimli(pc) > 10_000);
        }
    }
}

/// The result of the reader must not depend on `.eh_frame_hdr`: compares with a table of one entry.
#[test]
fn scan_finds_what_the_sorted_table_finds() {
    loader::prepare();
    let pc = symbol(c"libgcc_s.so.1", c"_Unwind_Backtrace").unwrap();
    let sorted = loader::find_module(pc).and_then(|module| module.table).unwrap();
    let start = sorted.entries;
    let section =
        TableSection { bytes: &sorted.section.bytes[start..], address: sorted.section.address + start as u64 };
    let scanned = Table::from_entries(section);
    for pc in (pc..pc + 400).step_by(3) {
        assert_eq!(rule_at(&scanned, pc, &mut Cie::NONE.clone()), rule_at(&sorted, pc, &mut Cie::NONE.clone()));
    }
    assert_eq!(rule_at(&scanned, 0x1000, &mut Cie::NONE.clone()).kind(), RuleKind::NoEntry);
}

#[test]
fn dwarf_register_numbers_equal_gimlis() {
    assert_eq!((dwarf::FRAME_POINTER, dwarf::STACK_POINTER), (u64::from(FP.0), u64::from(SP.0)));
    assert_eq!(dwarf::RETURN_ADDRESS, u64::from(RA.0));
}
