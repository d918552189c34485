//! A file's symbols, by address.

use object::read::elf::{Sym as _, SymbolTable};
use object::{Endianness, elf};

use crate::elf::Elf;

/// A function's symbol, in two words.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where it begins, and in the lowest bits how good a name it is: lower is better. Addresses that do not fit
    /// are not those of any function.
    key: u64,
    size: u32,
    /// Where the name lies in the table's strings.
    name: u32,
}

const RANK_BITS: u32 = 2;

impl Entry {
    fn start(&self) -> u64 {
        self.key >> RANK_BITS
    }
}

/// The functions of one symbol table, sorted.
#[derive(Debug, Default)]
pub(crate) struct SymbolIndex {
    entries: Vec<Entry>,
    /// How far back an enclosing symbol can begin.
    largest: u64,
}

/// Which of a file's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Symtab,
    Dynsym,
}

/// A symbol that holds an address: where it begins, and where its name lies in the table's strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: u64,
    pub(crate) name: u32,
    /// Whether the table says where the function ends; if not, it may be another one without a symbol.
    pub(crate) is_sized: bool,
}

/// How many symbols before an address are looked at for one that encloses it.
const LOOK_BACK: usize = 32;

impl SymbolIndex {
    pub(crate) fn build(elf: &Elf<'_>, which: Which) -> Self {
        let table = table(elf, which);
        let endian = elf.endian();
        let mut entries = Vec::with_capacity(table.len() / 2);
        for symbol in table.iter() {
            let is_function = match symbol.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
                elf::STT_NOTYPE => symbol.st_size(endian) > 0,
                _ => false,
            };
            let start = symbol.st_value(endian);
            let is_defined = symbol.st_shndx(endian) != elf::SHN_UNDEF && start != 0 && start < 1 << (64 - RANK_BITS);
            if is_function && is_defined {
                let rank = match symbol.st_bind() {
                    elf::STB_GLOBAL | elf::STB_GNU_UNIQUE => 0,
                    elf::STB_WEAK => 1,
                    _ => 2,
                };
                let size = u32::try_from(symbol.st_size(endian)).unwrap_or(u32::MAX);
                entries.push(Entry { key: start << RANK_BITS | rank, size, name: symbol.st_name(endian) });
            }
        }
        // Among equals the order of the table does not matter, but that it is always the same does.
        entries.sort_unstable_by_key(|entry| (entry.key, entry.name));
        let largest = entries.iter().map(|entry| u64::from(entry.size)).max().unwrap_or(0);
        Self { entries, largest }
    }

    /// The symbol that holds `stated`: the innermost one, by its best name.
    pub(crate) fn find(&self, stated: u64) -> Option<Found> {
        let after = self.entries.partition_point(|entry| entry.start() <= stated);
        let before = &self.entries[..after];
        let reach = stated.saturating_sub(self.largest);
        let encloses = |entry: &Entry| stated - entry.start() < u64::from(entry.size);
        let near = before.iter().enumerate().rev().take(LOOK_BACK).take_while(|(_, entry)| entry.start() >= reach);
        let enclosing = near.clone().find(|(_, entry)| encloses(entry));
        let (index, found) = enclosing.or_else(|| near.clone().next().filter(|(_, entry)| entry.size == 0))?;
        // Of the symbols that begin there and are as large, the one with the best rank comes first.
        let same = before[..=index].iter().rev().take_while(|entry| entry.start() == found.start());
        let best = same.filter(|entry| entry.size == found.size).last().unwrap_or(found);
        Some(Found { start: best.start(), name: best.name, is_sized: best.size != 0 })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The name that lies at `offset` in the strings of a file's table.
pub(crate) fn name<'a>(elf: &Elf<'a>, which: Which, offset: u32) -> Option<&'a str> {
    let name = table(elf, which).strings().get(offset).ok()?;
    std::str::from_utf8(name).ok().filter(|name| !name.is_empty())
}

fn table<'a, 'f>(elf: &'f Elf<'a>, which: Which) -> &'f SymbolTable<'a, elf::FileHeader64<Endianness>> {
    match which {
        Which::Symtab => elf.elf_symbol_table(),
        Which::Dynsym => elf.elf_dynamic_symbol_table(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index of symbols: where each begins, its size and its rank; names are their numbers.
    fn index(symbols: &[(u64, u32, u64)]) -> SymbolIndex {
        let entry = |(name, (start, size, rank)): (u32, &(u64, u32, u64))| Entry {
            key: start << RANK_BITS | rank,
            size: *size,
            name,
        };
        let mut entries: Vec<Entry> = (0..).zip(symbols).map(entry).collect();
        entries.sort_unstable_by_key(|entry| (entry.key, entry.name));
        let largest = entries.iter().map(|entry| u64::from(entry.size)).max().unwrap_or(0);
        SymbolIndex { entries, largest }
    }

    #[test]
    fn a_symbol_around_smaller_ones_holds_what_is_between_them() {
        let mut symbols = vec![(0x1000, 0x1000, 0)];
        symbols.extend((0..10).map(|number| (0x1100 + 0x10 * number, 8, 0)));
        let index = index(&symbols);
        let found = |address| index.find(address).map(|found| (found.start, found.name));
        assert_eq!(found(0x1194), Some((0x1190, 10)), "the innermost one");
        assert_eq!(found(0x1198), Some((0x1000, 0)), "behind the last of the inner ones");
        assert_eq!(found(0x1108), Some((0x1000, 0)), "between two inner ones");
        assert_eq!(found(0x2000), None, "behind the end");
    }

    #[test]
    fn the_best_name_of_equal_symbols_is_taken() {
        let index = index(&[(0x1000, 16, 2), (0x1000, 16, 0), (0x1000, 16, 1)]);
        assert_eq!(index.find(0x100f).map(|found| (found.name, found.is_sized)), Some((1, true)));
    }

    #[test]
    fn a_symbol_without_a_size_holds_what_follows_it() {
        let index = index(&[(0x1000, 0, 0), (0x1100, 4, 0)]);
        assert_eq!(index.find(0x10ff), None, "further than the largest symbol reaches");
        assert_eq!(index.find(0x1003).map(|found| (found.start, found.is_sized)), Some((0x1000, false)));
        assert_eq!(index.find(0x1104), None, "behind one that has a size");
    }
}
