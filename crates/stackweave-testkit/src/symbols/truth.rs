//! The results of an oracle for the addresses of a file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::module_file::LibraryFile;
use super::names::canonical;
use super::{Skipped, SymbolizedFrame, cxxfilt, llvm_symbolizer};

/// `llvm-symbolizer`'s results for addresses in every function of a file.
#[derive(Clone, Debug)]
pub struct Truth {
    /// The file.
    pub file: PathBuf,
    /// The addresses.
    pub addresses: Vec<u64>,
    /// The result for each address.
    pub answers: Vec<Vec<SymbolizedFrame>>,
    /// Functions with more than one name.
    pub other_names: OtherNames,
}

impl Truth {
    /// Queries `llvm-symbolizer` for about `count` addresses.
    pub fn about(file: &Path, count: usize) -> Result<Self, Skipped> {
        let module = LibraryFile::read(file);
        let addresses = module.sample(count);
        let answers = llvm_symbolizer::resolve(file, &addresses, &[])?;
        Ok(Self { file: file.to_owned(), addresses, answers, other_names: OtherNames::of(&module) })
    }
}

/// Functions with more than one name: aliases, and functions that were merged because their code is the same. Any
/// of the names is right.
#[derive(Clone, Debug, Default)]
pub struct OtherNames {
    by_start: BTreeMap<u64, (Range<u64>, Vec<String>)>,
}

impl OtherNames {
    fn of(module: &LibraryFile) -> Self {
        let plain = cxxfilt::demangle(module.functions.iter().map(|(name, _)| name.as_str()));
        let mut by_start: BTreeMap<u64, (Range<u64>, Vec<String>)> = BTreeMap::new();
        for ((_, range), plain) in module.functions.iter().zip(plain) {
            let (_, names) = by_start.entry(range.start).or_insert_with(|| (range.clone(), Vec::new()));
            names.push(canonical(&plain));
        }
        by_start.retain(|_, (_, names)| {
            names.sort();
            names.dedup();
            names.len() > 1
        });
        Self { by_start }
    }

    /// Returns `ours` with the outermost function named as in `expected`, if both are names of the function at
    /// `address`.
    pub fn renamed(
        &self,
        address: u64,
        ours: &[SymbolizedFrame],
        expected: &[SymbolizedFrame],
    ) -> Option<Vec<SymbolizedFrame>> {
        let (_, (range, names)) = self.by_start.range(..=address).next_back()?;
        let is_name =
            |place: &SymbolizedFrame| place.function.as_ref().is_some_and(|name| names.contains(&canonical(name)));
        if !range.contains(&address) || !is_name(ours.last()?) || !is_name(expected.last()?) {
            return None;
        }
        let mut renamed = ours.to_vec();
        renamed.last_mut()?.function.clone_from(&expected.last()?.function);
        Some(renamed)
    }
}
