//! Resolves addresses of one module from its file.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::debug_files::{DebugFiles, SearchPaths};
use crate::demangle::{demangle, is_mangled};
use crate::dwarf::{self, Dwarf, DwarfFrame};
use crate::elf::{self, ElfImage};
use crate::function_starts;
use crate::mini_debug_info;
use crate::module_file::ModuleFile;
use crate::options::SymbolizeMode;
use crate::resolved::{ResolvedFrame, SymbolSource, Symbolized, UnresolvedReason};
use crate::symbols::{self, SymbolIndex, TableKind};

/// The parsed contents of a module's file and of its debug files.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    debug: OnceLock<DebugFiles>,
    dwarf: OnceLock<Option<Dwarf>>,
    tables: [OnceLock<NamedTable>; 3],
}

/// A symbol table, and the file that contains it.
#[derive(Debug, Default)]
struct NamedTable {
    index: SymbolIndex,
    image: Option<Arc<ElfImage>>,
}

/// The tables in order of preference.
const TABLES: [(SymbolSource, TableKind); 3] = [
    (SymbolSource::SymbolTable, TableKind::Symtab),
    (SymbolSource::MiniDebugInfo, TableKind::Symtab),
    (SymbolSource::DynamicSymbols, TableKind::Dynsym),
];

/// A function without lines, which most addresses share with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum FunctionName {
    /// The index of its table, and the offset of its name in the table's strings.
    Symbol(usize, u32),
    /// The stated start of one without a name.
    Unnamed(u64),
}

/// The result for an address, before functions are named.
#[derive(Debug)]
enum Found {
    Function(FunctionName),
    Other(Symbolized),
}

/// Resolves a batch of addresses of one module.
#[derive(Debug)]
pub(crate) struct ModuleLookup<'a> {
    file: &'a ModuleFile,
    contents: &'a Contents,
    search_paths: &'a SearchPaths,
    /// The texts of debug information: demangled names by their mangled ones, and paths.
    texts: RefCell<HashMap<String, Arc<str>>>,
}

/// The frames of a function, and their source.
type NamedFunction = (Arc<[ResolvedFrame]>, SymbolSource);

/// The number of addresses, and of bytes in a table of strings, after which memory is released.
const ADDRESSES_BETWEEN: usize = 128;
const BYTES_BETWEEN: u32 = 4 << 20;

impl<'a> ModuleLookup<'a> {
    pub(crate) fn new(file: &'a ModuleFile, contents: &'a Contents, search_paths: &'a SearchPaths) -> Self {
        Self { file, contents, search_paths, texts: RefCell::default() }
    }

    /// Resolves sorted addresses. Each function is named once, in the order of the names in the file: so the names of
    /// a large library are read a part at a time.
    pub(crate) fn resolve(&self, stated: &[u64]) -> Vec<Symbolized> {
        let mut found = Vec::with_capacity(stated.len());
        for addresses in stated.chunks(ADDRESSES_BETWEEN) {
            found.extend(addresses.iter().map(|stated| guarded(|| self.find(*stated)).unwrap_or(Found::BAD_FILE)));
            self.release();
        }
        let named = self.name_all(&found);
        let resolve = |(stated, found): (&u64, Found)| match found {
            Found::Other(symbolized) => symbolized,
            Found::Function(function) => match named.get(&function) {
                Some(Some(named)) => symbolized(named),
                _ => guarded(|| self.resolve_behind(*stated, function)).unwrap_or(BAD_FILE),
            },
        };
        stated.iter().zip(found).map(resolve).collect()
    }

    /// Releases the memory of files that were read, unless they are kept.
    pub(crate) fn release(&self) {
        if !self.search_paths.options.keeps_files {
            self.file.image.bytes().release();
            if let Some(main) = self.contents.debug.get().and_then(|debug| debug.main.as_ref()) {
                main.bytes().release();
            }
        }
    }

    fn find(&self, stated: u64) -> Found {
        // `dladdr` knows exported names only.
        if self.search_paths.options.mode == SymbolizeMode::Dladdr {
            return self.find_function(stated, TABLES.len() - 1);
        }
        let frames = self.dwarf().map(|dwarf| dwarf.frames(stated)).unwrap_or_default();
        if frames.is_empty() {
            self.find_function(stated, 0)
        } else {
            Found::Other(self.frames_of_dwarf(frames, stated))
        }
    }

    /// Finds the function in the first table that has it, from the one with the index `first` on; otherwise by its
    /// unwind entry.
    fn find_function(&self, stated: u64, first: usize) -> Found {
        let symbol =
            (first..TABLES.len()).find_map(|table| Some(FunctionName::Symbol(table, self.find_symbol(stated, table)?)));
        let unnamed = || self.file.image.with(|elf| function_starts::start_of(elf, stated)).map(FunctionName::Unnamed);
        let unknown = Found::Other(Symbolized::Unknown(UnresolvedReason::NoSymbol));
        symbol.or_else(unnamed).map_or(unknown, Found::Function)
    }

    /// Returns the name of the symbol that contains `stated`, as its offset in the table's strings.
    fn find_symbol(&self, stated: u64, table: usize) -> Option<u32> {
        let found = self.table(table).index.find(stated)?;
        (found.is_sized || !self.is_another_function(found.start, stated)).then_some(found.name)
    }

    /// Returns whether the function at `stated` is different from the one that a symbol without a size names: its
    /// unwind entry begins after `start`, or it is in a different section.
    fn is_another_function(&self, start: u64, stated: u64) -> bool {
        self.file.image.with(|elf| {
            let begins = function_starts::start_of(elf, stated);
            begins.is_some_and(|begins| begins > start) || !elf::are_in_one_section(elf, start, stated)
        })
    }

    /// Names each function once; `None` for a symbol without a valid name.
    fn name_all(&self, found: &[Found]) -> HashMap<FunctionName, Option<NamedFunction>> {
        let function = |found: &Found| if let Found::Function(function) = found { Some(*function) } else { None };
        let mut functions: Vec<FunctionName> = found.iter().filter_map(function).collect();
        functions.sort_unstable();
        functions.dedup();
        let mut released = 0;
        let name = |function: FunctionName| {
            if let FunctionName::Symbol(_, name) = function
                && name.abs_diff(released) > BYTES_BETWEEN
            {
                released = name;
                self.release();
            }
            (function, guarded(|| self.name(function)).flatten())
        };
        functions.into_iter().map(name).collect()
    }

    fn name(&self, function: FunctionName) -> Option<NamedFunction> {
        let (name, source) = match function {
            FunctionName::Symbol(table, name) => (demangle(&self.string(table, name)?), TABLES[table].0),
            FunctionName::Unnamed(start) => (self.unnamed(start), SymbolSource::UnwindEntry),
        };
        let frame = ResolvedFrame { function: name.into(), file: None, line: None, column: None, is_inlined: false };
        Some((Arc::new([frame]), source))
    }

    /// Resolves an address whose symbol has no valid name, by the sources behind its table.
    fn resolve_behind(&self, stated: u64, function: FunctionName) -> Symbolized {
        let FunctionName::Symbol(table, _) = function else { return BAD_FILE };
        match self.find_function(stated, table + 1) {
            Found::Other(symbolized) => symbolized,
            Found::Function(next) => {
                self.name(next).map_or_else(|| self.resolve_behind(stated, next), |named| symbolized(&named))
            }
        }
    }

    fn unnamed(&self, start: u64) -> String {
        format!("{}+{start:#x}", self.file.name)
    }

    fn string(&self, table: usize, offset: u32) -> Option<String> {
        let image = self.table(table).image.as_ref()?;
        image.with(|elf| symbols::name(elf, TABLES[table].1, offset).map(str::to_owned))
    }

    fn frames_of_dwarf(&self, frames: Vec<DwarfFrame>, stated: u64) -> Symbolized {
        let last = frames.len() - 1;
        let frame = |(index, frame): (usize, DwarfFrame)| {
            let function = match frame.function {
                // A function with internal linkage has no linkage name in DWARF: its symbol has its scopes.
                Some(name) if index == last && frame.may_lack_scopes && !is_mangled(&name) => {
                    let symbol = self.symbol(stated).filter(|symbol| is_mangled(symbol));
                    symbol.map_or_else(|| self.text(name.clone(), |name| name.into()), |symbol| self.demangled(symbol))
                }
                Some(name) => self.demangled(name),
                None => self.symbol(stated).map_or_else(|| self.unnamed(stated).into(), |name| self.demangled(name)),
            };
            ResolvedFrame {
                function,
                file: frame.file.map(|file| self.text(file, |file| file.into())),
                line: frame.line,
                column: frame.column,
                is_inlined: index != last,
            }
        };
        Symbolized::Frames { frames: frames.into_iter().enumerate().map(frame).collect(), source: SymbolSource::Dwarf }
    }

    /// Returns the name of the symbol that contains `stated`, from the first table that has one.
    fn symbol(&self, stated: u64) -> Option<String> {
        (0..TABLES.len()).find_map(|table| self.string(table, self.find_symbol(stated, table)?))
    }

    fn demangled(&self, name: String) -> Arc<str> {
        self.text(name, |name| demangle(name).into())
    }

    /// Returns the text that `convert` makes of `text`, which is always the same for the same text.
    fn text(&self, text: String, convert: impl FnOnce(&str) -> Arc<str>) -> Arc<str> {
        let mut texts = self.texts.borrow_mut();
        if let Some(known) = texts.get(&text) {
            return Arc::clone(known);
        }
        let converted = convert(&text);
        texts.insert(text, Arc::clone(&converted));
        converted
    }

    fn table(&self, table: usize) -> &NamedTable {
        self.contents.tables[table].get_or_init(|| {
            let (source, table_kind) = TABLES[table];
            let own = || Some(Arc::clone(&self.file.image));
            let candidates = match source {
                SymbolSource::MiniDebugInfo => [self.file.image.with(mini_debug_info::extract).map(Arc::new), None],
                SymbolSource::DynamicSymbols => [own(), None],
                _ => [own(), self.debug_files().main.clone()],
            };
            let mut tables = candidates.into_iter().flatten().map(|image| {
                let index = image.with(|elf| SymbolIndex::build(elf, table_kind));
                NamedTable { index, image: Some(image) }
            });
            let found = tables.find(|table| !table.index.is_empty()).unwrap_or_default();
            self.release();
            found
        })
    }

    fn dwarf(&self) -> Option<&Dwarf> {
        self.contents
            .dwarf
            .get_or_init(|| {
                let debug = self.debug_files();
                let image = if self.file.image.with(dwarf::is_in) { &self.file.image } else { debug.main.as_ref()? };
                let supplement = debug.supplement.as_ref().map(|image| image.bytes().clone());
                Dwarf::open(image.bytes().clone(), supplement, self.file.path().map(package_path))
            })
            .as_ref()
    }

    fn debug_files(&self) -> &DebugFiles {
        let find = || DebugFiles::find(&self.file.image, self.file.path(), self.search_paths);
        self.contents.debug.get_or_init(find)
    }
}

const BAD_FILE: Symbolized = Symbolized::Unknown(UnresolvedReason::BadFile);

impl Found {
    const BAD_FILE: Self = Self::Other(BAD_FILE);
}

fn symbolized((frames, source): &NamedFunction) -> Symbolized {
    Symbolized::Frames { frames: Arc::clone(frames), source: *source }
}

/// Returns the path of a program's package of split debug information: `program.dwp`.
fn package_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".dwp");
    name.into()
}

/// Calls `work`, and returns `None` if it panics. Parsers should never panic, for any file; if one does, only one
/// result is lost.
pub(crate) fn guarded<R>(work: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
