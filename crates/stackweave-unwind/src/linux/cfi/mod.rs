//! From an address to a [`Rule`](crate::platform::rule::Rule): a lean reader of `.eh_frame_hdr` and `.eh_frame`.
//!
//! It follows only the three registers that nearly every row is about, which makes it two to three
//! times faster than evaluating the whole row; whatever it can't express it names, and the general
//! evaluator (gimli) reads the same entry again. All input is untrusted: every read is checked, every
//! loop consumes input, and a malformed entry is an answer, not a fault.

mod entry;
mod pointer;
mod reader;
mod row;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use entry::Cie;
pub(crate) use reader::Section;
pub(crate) use table::Table;

use crate::platform::rule::{Kind, Rule};

/// Finds the entry for `pc` in `table` and compiles its row. `last` is the most recently used CIE.
/// What this reader does not understand is left to the general evaluator, which knows more or says why not.
pub(crate) fn rule_at(table: &Table<'_>, pc: u64, last: &mut Cie) -> Rule {
    match table.find(pc, last) {
        Ok(Some(fde)) => row::compile(&table.section, &fde, last, pc).unwrap_or(Rule::of(Kind::General)),
        Ok(None) => Rule::of(Kind::NoEntry),
        Err(Malformed) => Rule::of(Kind::General),
    }
}

/// The unwind table says something that no correct table says, or that this reader does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

pub(crate) type Result<T> = core::result::Result<T, Malformed>;
