//! The functions and the identity of a library's file.

use std::fs;
use std::ops::Range;
use std::path::Path;

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

/// A library's file.
#[derive(Clone, Debug)]
pub struct LibraryFile {
    /// Its functions by name: from `.symtab`, or from `.dynsym` if there is no `.symtab`.
    pub functions: Vec<(String, Range<u64>)>,
    /// Its build id.
    pub build_id: Option<Vec<u8>>,
    /// The end address of the last segment.
    pub end: u64,
    /// Whether it has debug information.
    pub has_dwarf: bool,
}

impl LibraryFile {
    /// Reads the file.
    ///
    /// # Panics
    /// When it cannot be read, or is not an object file.
    pub fn read(path: &Path) -> Self {
        let data = fs::read(path).expect("the library can be read");
        let file = object::File::parse(&*data).expect("the library is an object file");
        let table = || file.symbols().chain(file.dynamic_symbols());
        let functions = table()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0)
            .map(|symbol| {
                let range = symbol.address()..symbol.address() + symbol.size();
                (symbol.name().unwrap_or_default().to_owned(), range)
            })
            .collect();
        Self {
            functions,
            build_id: file.build_id().ok().flatten().map(<[u8]>::to_vec),
            end: file.segments().map(|segment| segment.address() + segment.size()).max().unwrap_or(0),
            has_dwarf: file.section_by_name(".debug_info").is_some(),
        }
    }

    /// Returns the addresses of the function `name`.
    ///
    /// # Panics
    /// When there is no such function.
    pub fn function(&self, name: &str) -> Range<u64> {
        let found = self.functions.iter().find(|(function, _)| function == name);
        found.unwrap_or_else(|| panic!("no function {name}")).1.clone()
    }

    /// Returns about `count` addresses in functions, evenly spread, in ascending order.
    pub fn sample(&self, count: usize) -> Vec<u64> {
        let mut ranges: Vec<Range<u64>> = self.functions.iter().map(|(_, range)| range.clone()).collect();
        ranges.sort_by_key(|range| (range.start, range.end));
        let mut bytes = Vec::new();
        let mut covered = 0;
        for range in ranges {
            bytes.extend(range.start.max(covered)..range.end.max(covered));
            covered = covered.max(range.end);
        }
        let step = (bytes.len() / count).max(1);
        bytes.into_iter().step_by(step).collect()
    }
}
