//! A loaded module with slots: the symbols and relocations in its dynamic section.

use core::ops::Range;

use crate::platform::interpose::relocations::Relocation;
use crate::platform::loaded_module::{
    DT_JMPREL, DT_PLTREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_STRSZ, DT_STRTAB, DT_SYMTAB, LoadedModule, Plain,
};

const PAGE: u64 = 4096;

/// A loaded module, while the loader's callback runs.
#[derive(Debug)]
pub(super) struct InterposedModule<'a> {
    pub(super) loaded: LoadedModule<'a>,
    /// The address of its dynamic section; with the base, it identifies the module.
    pub(super) dynamic: u64,
    symbols: u64,
    strings: &'a [u8],
    tables: [&'a [Relocation]; 2],
}

impl<'a> InterposedModule<'a> {
    /// Returns the module of `info`. `None` if it has no dynamic section.
    ///
    /// # Safety
    /// `info` is what the loader passes to a callback that still runs.
    pub(super) unsafe fn new(info: &'a libc::dl_phdr_info) -> Option<Self> {
        // SAFETY: passed on to the caller, who vouches for `info`.
        let loaded = unsafe { LoadedModule::of(info) }?;
        let dynamic = loaded.segment_of_kind(libc::PT_DYNAMIC)?.start;
        Some(Self { loaded, dynamic, symbols: 0, strings: &[], tables: [&[], &[]] })
    }

    /// Reads the dynamic section. `None` if it has no tables of slots.
    pub(super) fn with_tables(mut self) -> Option<Self> {
        let dynamic = self.loaded.dynamic()?;
        self.symbols = dynamic.address(DT_SYMTAB)?;
        self.strings = self.loaded.array(dynamic.address(DT_STRTAB)?, dynamic.value(DT_STRSZ)?)?;
        let table = |at, size| self.loaded.array(dynamic.address(at)?, dynamic.value(size)?);
        let bound = table(DT_RELA, DT_RELASZ);
        let called = if dynamic.value(DT_PLTREL) == Some(DT_RELA) { table(DT_JMPREL, DT_PLTRELSZ) } else { None };
        self.tables = [bound.unwrap_or_default(), called.unwrap_or_default()];
        self.tables.iter().any(|table| !table.is_empty()).then_some(self)
    }

    pub(super) fn relocations(&self) -> impl Iterator<Item = &'a Relocation> + use<'a> {
        let [bound, called] = self.tables;
        bound.iter().chain(called)
    }

    /// Returns the symbol of that number.
    pub(super) fn symbol(&self, number: u32) -> Option<libc::Elf64_Sym> {
        self.loaded.item(self.symbols, number.into())
    }

    /// Returns a symbol's name and all strings after it, from its first byte on.
    pub(super) fn name(&self, symbol: &libc::Elf64_Sym) -> Option<&'a [u8]> {
        self.strings.get(symbol.st_name as usize..)
    }

    /// Returns whether `address` is in the module's code.
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.loaded.segments(libc::PF_X).any(|segment| segment.contains(&address))
    }

    /// Returns whether the loader may have put a word at `address`: it is aligned, and in a writable segment.
    pub(super) fn is_slot(&self, address: u64) -> bool {
        let within = |segment: Range<u64>| segment.start <= address && address.saturating_add(8) <= segment.end;
        address.is_multiple_of(8) && self.loaded.segments(libc::PF_R | libc::PF_W).any(within)
    }

    /// Returns the pages that the loader made read-only after it had filled them in.
    pub(super) fn read_only_after_binding(&self) -> Range<u64> {
        let range = self.loaded.segment_of_kind(libc::PT_GNU_RELRO).unwrap_or(0..0);
        let (start, end) = (range.start / PAGE * PAGE, range.end / PAGE * PAGE);
        start..end.max(start)
    }
}

// SAFETY: integers without padding, as the format defines them.
unsafe impl Plain for Relocation {}
