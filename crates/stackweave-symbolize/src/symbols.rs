//! The symbols of a file, by address.

use object::read::elf::{Sym as _, SymbolTable};
use object::{Endianness, elf};

use crate::elf::Elf;

/// The symbol of a function, in two words.
#[derive(Clone, Copy, Debug)]
struct SymbolEntry {
    /// Its start, with a rank of the name in the lowest bits: lower is better. Addresses that do not fit are not
    /// those of functions.
    key: u64,
    size: u32,
    /// The offset of the name in the table's strings.
    name: u32,
}

const RANK_BITS: u32 = 2;

impl SymbolEntry {
    fn start(&self) -> u64 {
        self.key >> RANK_BITS
    }
}

/// The functions of one symbol table, sorted.
#[derive(Debug, Default)]
pub(crate) struct SymbolIndex {
    entries: Vec<SymbolEntry>,
    /// The maximum distance to the start of an enclosing symbol.
    largest: u64,
}

/// The tables of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    Symtab,
    Dynsym,
}

/// A symbol that contains an address: its start, and the offset of its name in the table's strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundSymbol {
    pub(crate) start: u64,
    pub(crate) name: u32,
    /// Whether the table states the end of the function; if not, the address may belong to a different function
    /// without a symbol.
    pub(crate) is_sized: bool,
}

/// The number of symbols before an address that are checked for one that encloses it.
const LOOK_BACK: usize = 32;

impl SymbolIndex {
    pub(crate) fn build(elf: &Elf<'_>, table_kind: TableKind) -> Self {
        let (table, endian) = (table(elf, table_kind), elf.endian());
        let function = |symbol: &elf::Sym64<Endianness>| {
            let is_function = match symbol.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
                elf::STT_NOTYPE => symbol.st_size(endian) > 0,
                _ => false,
            };
            let start = symbol.st_value(endian);
            let is_defined = symbol.st_shndx(endian) != elf::SHN_UNDEF && start != 0 && start < 1 << (64 - RANK_BITS);
            (is_function && is_defined).then_some(start)
        };
        let mut entries = Vec::with_capacity(table.iter().filter_map(function).count());
        for (symbol, start) in table.iter().filter_map(|symbol| Some((symbol, function(symbol)?))) {
            let rank = match symbol.st_bind() {
                elf::STB_GLOBAL | elf::STB_GNU_UNIQUE => 0,
                elf::STB_WEAK => 1,
                _ => 2,
            };
            let size = u32::try_from(symbol.st_size(endian)).unwrap_or(u32::MAX);
            entries.push(SymbolEntry { key: start << RANK_BITS | rank, size, name: symbol.st_name(endian) });
        }
        // The order of equal symbols does not matter, but it must always be the same.
        entries.sort_unstable_by_key(|entry| (entry.key, entry.name));
        let largest = entries.iter().map(|entry| u64::from(entry.size)).max().unwrap_or(0);
        Self { entries, largest }
    }

    /// Returns the symbol that contains `stated`: the innermost one, with its best name.
    pub(crate) fn find(&self, stated: u64) -> Option<FoundSymbol> {
        let after = self.entries.partition_point(|entry| entry.start() <= stated);
        let before = &self.entries[..after];
        let reach = stated.saturating_sub(self.largest);
        let encloses = |entry: &SymbolEntry| stated - entry.start() < u64::from(entry.size);
        let near = before.iter().enumerate().rev().take(LOOK_BACK).take_while(|(_, entry)| entry.start() >= reach);
        let enclosing = near.clone().find(|(_, entry)| encloses(entry));
        let (index, found) = enclosing.or_else(|| near.clone().next().filter(|(_, entry)| entry.size == 0))?;
        // Of the symbols with the same start and size, the one with the best rank comes first.
        let same = before[..=index].iter().rev().take_while(|entry| entry.start() == found.start());
        let best = same.filter(|entry| entry.size == found.size).last().unwrap_or(found);
        Some(FoundSymbol { start: best.start(), name: best.name, is_sized: best.size != 0 })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Returns the name at `offset` in the strings of a file's table.
pub(crate) fn name<'a>(elf: &Elf<'a>, table_kind: TableKind, offset: u32) -> Option<&'a str> {
    let name = table(elf, table_kind).strings().get(offset).ok()?;
    std::str::from_utf8(name).ok().filter(|name| !name.is_empty())
}

fn table<'a, 'f>(elf: &'f Elf<'a>, table_kind: TableKind) -> &'f SymbolTable<'a, elf::FileHeader64<Endianness>> {
    match table_kind {
        TableKind::Symtab => elf.elf_symbol_table(),
        TableKind::Dynsym => elf.elf_dynamic_symbol_table(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an index of symbols: start, size and rank of each; names are their numbers.
    fn index(symbols: &[(u64, u32, u64)]) -> SymbolIndex {
        let entry = |(name, (start, size, rank)): (u32, &(u64, u32, u64))| SymbolEntry {
            key: start << RANK_BITS | rank,
            size: *size,
            name,
        };
        let mut entries: Vec<SymbolEntry> = (0..).zip(symbols).map(entry).collect();
        entries.sort_unstable_by_key(|entry| (entry.key, entry.name));
        let largest = entries.iter().map(|entry| u64::from(entry.size)).max().unwrap_or(0);
        SymbolIndex { entries, largest }
    }

    #[test]
    fn a_symbol_around_smaller_ones_contains_the_gaps_between_them() {
        let mut symbols = vec![(0x1000, 0x1000, 0)];
        symbols.extend((0..10).map(|number| (0x1100 + 0x10 * number, 8, 0)));
        let index = index(&symbols);
        let found = |address| index.find(address).map(|found| (found.start, found.name));
        assert_eq!(found(0x1194), Some((0x1190, 10)), "the innermost symbol");
        assert_eq!(found(0x1198), Some((0x1000, 0)), "behind the last of the inner ones");
        assert_eq!(found(0x1108), Some((0x1000, 0)), "between two inner ones");
        assert_eq!(found(0x2000), None, "behind the end");
    }

    #[test]
    fn the_best_name_of_equal_symbols_is_used() {
        let index = index(&[(0x1000, 16, 2), (0x1000, 16, 0), (0x1000, 16, 1)]);
        assert_eq!(index.find(0x100f).map(|found| (found.name, found.is_sized)), Some((1, true)));
    }

    #[test]
    fn a_symbol_without_a_size_contains_what_follows() {
        let index = index(&[(0x1000, 0, 0), (0x1100, 4, 0)]);
        assert_eq!(index.find(0x10ff), None, "beyond the largest symbol's size");
        assert_eq!(index.find(0x1003).map(|found| (found.start, found.is_sized)), Some((0x1000, false)));
        assert_eq!(index.find(0x1104), None, "behind one that has a size");
    }
}
