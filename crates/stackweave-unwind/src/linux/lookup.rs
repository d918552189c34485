//! Finds the rule for an address after a cache miss: module, table, row.
//!
//! Moderately hot file: no allocation, no lock (with glibc 2.35 or later), async-signal-safe.

use stackweave_core::CodeAddress;

use crate::platform::cfi::{Cie, Malformed, Table, rule_at};
use crate::platform::loader::{self, LoadedObject};
use crate::platform::registered_code;
use crate::platform::rule::{Rule, RuleKind};

const MODULES: usize = 16;

/// A thread's cache of modules.
#[derive(Debug)]
pub(crate) struct Lookup {
    modules: [LoadedObject; MODULES],
    /// The next slot to overwrite.
    next: usize,
    last_cie: Cie,
}

impl Lookup {
    pub(crate) const fn new() -> Self {
        Self { modules: [LoadedObject { start: 0, end: 0, table: None }; MODULES], next: 0, last_cie: Cie::NONE }
    }

    /// Drops everything: a module was unloaded.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Returns the rule for a frame at `address`.
    pub(crate) fn rule(&mut self, address: CodeAddress) -> Rule {
        let pc = address.lookup();
        match self.module(pc) {
            Some(LoadedObject { table: Some(table), .. }) => rule_at(&table, pc, &mut self.last_cie),
            Some(_) => Rule::of(RuleKind::NoEntry),
            None => registered_code::rule(pc).unwrap_or(Rule::of(RuleKind::NoModule)),
        }
    }

    /// Returns the table of the module that contains `pc`.
    pub(crate) fn table(&mut self, pc: u64) -> Option<Table<'static>> {
        self.module(pc)?.table
    }

    /// Returns the offset of the entry that covers `pc` in `table`'s section.
    pub(crate) fn entry_offset(&mut self, table: &Table<'_>, pc: u64) -> Result<Option<usize>, Malformed> {
        Ok(table.find(pc, &mut self.last_cie)?.map(|fde| fde.offset))
    }

    /// Returns the end of the unwind entry that covers `pc`, if there is one.
    pub(crate) fn end_of_entry(&mut self, pc: u64) -> Option<u64> {
        self.table(pc)?.end_of_entry(pc, &mut self.last_cie)
    }

    fn module(&mut self, pc: u64) -> Option<LoadedObject> {
        if let Some(module) = self.modules.iter().find(|module| pc >= module.start && pc < module.end) {
            return Some(*module);
        }
        let module = loader::find_module(pc)?;
        self.modules[self.next] = module;
        self.next = (self.next + 1) % MODULES;
        Some(module)
    }
}
