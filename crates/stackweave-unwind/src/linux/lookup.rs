//! From an address to its rule, on a cache miss: module, table, row.
//!
//! Hot enough: no allocation, no lock (with glibc 2.35 or later), async-signal-safe.

use stackweave_core::CodeAddress;

use crate::platform::cfi::{Cie, Malformed, Table, rule_at};
use crate::platform::loader::{self, Module};
use crate::platform::registered_code;
use crate::platform::rule::{Kind, Rule};

const MODULES: usize = 16;

/// A thread's memory of the modules it met.
#[derive(Debug)]
pub(crate) struct Lookup {
    modules: [Module; MODULES],
    /// The next place to be overwritten.
    next: usize,
    last_cie: Cie,
}

impl Lookup {
    pub(crate) const fn new() -> Self {
        Self { modules: [Module { start: 0, end: 0, table: None }; MODULES], next: 0, last_cie: Cie::NONE }
    }

    /// Forgets everything: a module was unloaded.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// The rule for a frame at `address`.
    pub(crate) fn rule(&mut self, address: CodeAddress) -> Rule {
        let pc = address.lookup();
        match self.module(pc) {
            Some(Module { table: Some(table), .. }) => rule_at(&table, pc, &mut self.last_cie),
            Some(_) => Rule::of(Kind::NoEntry),
            None => registered_code::rule(pc).unwrap_or(Rule::of(Kind::NoModule)),
        }
    }

    /// The table of the module that holds `pc`.
    pub(crate) fn table(&mut self, pc: u64) -> Option<Table<'static>> {
        self.module(pc)?.table
    }

    /// Where the entry that covers `pc` begins in `table`'s section.
    pub(crate) fn entry_offset(&mut self, table: &Table<'_>, pc: u64) -> Result<Option<usize>, Malformed> {
        Ok(table.find(pc, &mut self.last_cie)?.map(|fde| fde.offset))
    }

    /// Where the unwind entry ends that covers `pc`, if one does.
    pub(crate) fn end_of_entry(&mut self, pc: u64) -> Option<u64> {
        self.table(pc)?.end_of_entry(pc, &mut self.last_cie)
    }

    fn module(&mut self, pc: u64) -> Option<Module> {
        if let Some(module) = self.modules.iter().find(|module| pc >= module.start && pc < module.end) {
            return Some(*module);
        }
        let module = loader::find_module(pc)?;
        self.modules[self.next] = module;
        self.next = (self.next + 1) % MODULES;
        Some(module)
    }
}
