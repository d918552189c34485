//! Addresses to resolve: they are inside functions of a file's symbol table, and the same in every run.

use std::collections::BTreeSet;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use stackweave_files::MappedFile;

/// The functions of a file, and the kind of information that the file has about them.
#[derive(Clone, Debug)]
pub(super) struct Functions {
    /// Address and size of each function, sorted by address.
    ranges: Vec<(u64, u64)>,
    /// The best kind of symbols in the file: `DWARF 5`, `.symtab` or `.dynsym`.
    pub(super) kind: String,
    pub(super) has_dwarf: bool,
    pub(super) bytes: usize,
}

/// Reads the symbol tables. Returns `None` if the file has no functions.
pub(super) fn functions(path: &Path) -> Option<Functions> {
    let file = MappedFile::open(path).ok()?;
    let elf = object::File::parse(&*file).ok()?;
    let mut ranges = BTreeSet::new();
    ranges.extend(elf.symbols().filter_map(|symbol| range(&symbol)));
    let has_symtab = !ranges.is_empty();
    if !has_symtab {
        ranges.extend(elf.dynamic_symbols().filter_map(|symbol| range(&symbol)));
    }
    let dwarf = dwarf_version(&elf);
    let kind = match dwarf {
        Some(version) => format!("DWARF {version}"),
        None if has_symtab => ".symtab".to_owned(),
        None => ".dynsym".to_owned(),
    };
    let functions =
        Functions { ranges: ranges.into_iter().collect(), kind, has_dwarf: dwarf.is_some(), bytes: file.len() };
    (!functions.ranges.is_empty()).then_some(functions)
}

fn range<'a>(symbol: &impl ObjectSymbol<'a>) -> Option<(u64, u64)> {
    let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0;
    is_function.then(|| (symbol.address(), symbol.size()))
}

/// Returns the DWARF version of the first unit.
fn dwarf_version(elf: &object::File<'_>) -> Option<u16> {
    let data = elf.section_by_name(".debug_info")?.uncompressed_data().ok()?;
    Some(u16::from_le_bytes([*data.get(4)?, *data.get(5)?]))
}

impl Functions {
    /// Returns distinct addresses, each at some offset in some function; fewer than `count` if the file is too small.
    pub(super) fn addresses(&self, count: usize) -> Vec<u64> {
        let mut random = Random::new();
        let (mut seen, mut addresses) = (BTreeSet::new(), Vec::new());
        for _ in 0..count * 20 {
            if addresses.len() == count {
                break;
            }
            let (start, size) = self.ranges[random.below(self.ranges.len())];
            let offset = random.next() % size;
            if seen.insert(start + offset) {
                addresses.push(start + offset);
            }
        }
        addresses
    }
}

/// A xorshift generator, always with the same seed.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `bound`. It depends on the high bits of the state, which are the most random.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let scaled = (u128::from(self.next()) * bound as u128) >> 64;
        usize::try_from(scaled).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn samples_lie_in_functions_and_never_change() {
        let functions = Functions {
            ranges: vec![(0x1000, 8), (0x2000, 64)],
            kind: ".symtab".to_owned(),
            has_dwarf: false,
            bytes: 1,
        };
        let addresses = functions.addresses(40);
        assert_eq!(addresses, functions.addresses(40));
        assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), 40);
        assert!(
            addresses.iter().all(|address| (0x1000..0x1008).contains(address) || (0x2000..0x2040).contains(address))
        );
        assert_eq!(functions.addresses(1000).len(), 72);
    }

    #[test]
    fn this_program_has_functions() {
        let functions = env::current_exe().ok().and_then(|path| functions(&path));
        assert!(functions.is_some_and(|functions| functions.ranges.len() > 1000));
    }
}
