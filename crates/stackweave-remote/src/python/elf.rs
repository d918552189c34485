//! The addresses of a mapped file's symbols.

use std::fs::File;

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{LittleEndian, ReadCache};

use crate::maps::Mapping;

type Header = FileHeader64<LittleEndian>;
type Data<'a> = &'a ReadCache<File>;
type Sections<'a> = SectionTable<'a, Header, Data<'a>>;
type Symbols<'a> = SymbolTable<'a, Header, Data<'a>>;

const ENDIAN: LittleEndian = LittleEndian;

/// A file whose code a process runs.
pub(super) struct ElfFile<'a> {
    data: Data<'a>,
    sections: Sections<'a>,
    /// The difference between addresses in memory and in the file.
    bias: u64,
}

impl<'a> ElfFile<'a> {
    /// Parses the file. `None` if it is not an ELF file, or not the mapped one.
    pub(super) fn parse(data: Data<'a>, mapping: &Mapping) -> Option<Self> {
        let header = Header::parse(data).ok()?;
        let segments = header.program_headers(ENDIAN, data).ok()?;
        let code = segments.iter().find(|segment| {
            let offset = segment.p_offset(ENDIAN);
            segment.p_type(ENDIAN) == elf::PT_LOAD
                && mapping.offset <= offset
                && offset < mapping.offset.saturating_add(mapping.end.saturating_sub(mapping.start))
                && segment.p_flags(ENDIAN).contains(elf::PF_X)
        })?;
        let at = mapping.start.wrapping_add(code.p_offset(ENDIAN).wrapping_sub(mapping.offset));
        let bias = at.wrapping_sub(code.p_vaddr(ENDIAN));
        Some(Self { data, sections: header.sections(ENDIAN, data).ok()?, bias })
    }

    /// Returns the addresses of the symbols in that process, if the file exports the first of them.
    pub(super) fn exported<const N: usize>(&self, names: [&str; N]) -> Option<[Option<u64>; N]> {
        let symbols = self.sections.symbols(ENDIAN, self.data, elf::SHT_DYNSYM).ok()?;
        let Some((table, _)) = self.sections.gnu_hash(ENDIAN, self.data).ok()? else {
            return self.among(&symbols, names);
        };
        let versions = self.sections.versions(ENDIAN, self.data).ok()?.unwrap_or_default();
        let find = |name: &str| {
            let hash = elf::gnu_hash(name.as_bytes());
            let (_, symbol) = table.find(ENDIAN, name.as_bytes(), hash, None, &symbols, &versions)?;
            self.address(symbol)
        };
        // Skip the others if the first is missing: most files are not interpreters.
        find(names.first()?)?;
        Some(names.map(find))
    }

    /// Returns the addresses among all symbols, if the file has a table of them.
    pub(super) fn all<const N: usize>(&self, names: [&str; N]) -> Option<[Option<u64>; N]> {
        self.among(&self.sections.symbols(ENDIAN, self.data, elf::SHT_SYMTAB).ok()?, names)
    }

    fn among<const N: usize>(&self, symbols: &Symbols<'a>, names: [&str; N]) -> Option<[Option<u64>; N]> {
        let mut found = [None; N];
        for symbol in symbols.iter() {
            let Ok(name) = symbols.symbol_name(ENDIAN, symbol) else { continue };
            if let Some(index) = names.iter().position(|wanted| wanted.as_bytes() == name) {
                found[index] = self.address(symbol).or(found[index]);
            }
        }
        found.first()?.is_some().then_some(found)
    }

    fn address(&self, symbol: &elf::Sym64<LittleEndian>) -> Option<u64> {
        let is_defined = !symbol.is_undefined(ENDIAN) && symbol.st_value(ENDIAN) != 0;
        is_defined.then(|| symbol.st_value(ENDIAN).wrapping_add(self.bias))
    }

    /// Returns the read-only data, which contains texts.
    pub(super) fn constants(&self) -> Option<&'a [u8]> {
        let (_, section) = self.sections.section_by_name(ENDIAN, b".rodata")?;
        section.data(ENDIAN, self.data).ok()
    }
}
