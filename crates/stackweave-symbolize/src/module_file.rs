//! The file of one module, which is read as needed and then kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use stackweave_core::{BuildId, Module};
use stackweave_files::{FileIdentity, MappedFile};

use crate::byte_arena::FileBytes;
use crate::debug_files::{self, DebugFiles, SearchPaths};
use crate::demangle::{demangle, is_mangled};
use crate::dwarf::{self, Dwarf, DwarfFrame};
use crate::elf::{self, ElfImage};
use crate::function_starts;
use crate::mini_debug_info;
use crate::resolved::{ResolvedFrame, SymbolSource, Symbolized, UnresolvedReason};
use crate::symbols::{self, SymbolIndex, TableKind};

/// The file of one module.
#[derive(Debug)]
pub(crate) struct ModuleFile {
    /// The module's name, for functions without names.
    name: Arc<str>,
    image: Arc<ElfImage>,
    /// The path and identity of the opened file, unless the bytes are the kernel's own.
    opened: Option<(PathBuf, FileIdentity)>,
    has_build_id: bool,
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

impl ModuleFile {
    /// Opens the file of `module`: at its own path, or on the search path.
    pub(crate) fn open(module: &Module, search_paths: &SearchPaths) -> Result<Self, UnresolvedReason> {
        let name = Arc::from(module.name());
        if debug_files::is_kernels(&module.path) {
            let image = debug_files::read_from_memory(module).ok_or(UnresolvedReason::MissingFile)?;
            return Ok(Self::new(name, image, None, true));
        }
        let on_search_path =
            search_paths.options.search_path.iter().flat_map(|folder| debug_files::candidate_paths(folder, module));
        let mut reason = UnresolvedReason::MissingFile;
        for path in std::iter::once(module.path.clone()).chain(on_search_path) {
            match open_checked(&path, module.build_id.as_ref()) {
                Ok((image, identity)) => {
                    return Ok(Self::new(name, image, Some((path, identity)), module.build_id.is_some()));
                }
                Err(UnresolvedReason::MissingFile) => {}
                Err(other) => reason = other,
            }
        }
        Err(reason)
    }

    fn new(name: Arc<str>, image: ElfImage, opened: Option<(PathBuf, FileIdentity)>, has_build_id: bool) -> Self {
        let (debug, dwarf, tables) = Default::default();
        Self { name, image: Arc::new(image), opened, has_build_id, debug, dwarf, tables }
    }

    /// Returns whether the data is still valid for the module. A deleted file remains valid, and so does a
    /// replaced one if the module has a build id; a file that was written to does not.
    pub(crate) fn is_current(&self) -> bool {
        let Some((path, identity)) = &self.opened else { return true };
        let Ok(now) = FileIdentity::of_path(path) else { return true };
        now == *identity || (self.has_build_id && !now.is_same_file(identity))
    }

    /// Resolves the address `stated`.
    pub(crate) fn resolve(&self, stated: u64, search_paths: &SearchPaths) -> Symbolized {
        let frames = self.dwarf(search_paths).map(|dwarf| dwarf.frames(stated)).unwrap_or_default();
        if !frames.is_empty() {
            return self.frames_of_dwarf(frames, stated, search_paths);
        }
        if let Some((function, source)) = self.symbol(stated, search_paths, &TABLES) {
            return one_frame(function, source);
        }
        self.resolve_nameless(stated)
    }

    /// Resolves the address as `dladdr` does: by exported names only.
    pub(crate) fn resolve_exported(&self, stated: u64, search_paths: &SearchPaths) -> Symbolized {
        match self.symbol(stated, search_paths, &TABLES[2..]) {
            Some((function, source)) => one_frame(function, source),
            None => self.resolve_nameless(stated),
        }
    }

    /// Returns the file's path, for a child process.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.opened.as_ref().map(|(path, _)| path.as_path())
    }

    fn frames_of_dwarf(&self, frames: Vec<DwarfFrame>, stated: u64, search_paths: &SearchPaths) -> Symbolized {
        let last = frames.len() - 1;
        let frame = |(index, frame): (usize, DwarfFrame)| {
            let function = match frame.function {
                // A function with internal linkage has no linkage name in DWARF: its symbol has its scopes.
                Some(name) if index == last && frame.may_lack_scopes && !is_mangled(&name) => {
                    self.mangled_symbol(stated, search_paths).unwrap_or(name)
                }
                Some(name) => demangle(&name),
                None => {
                    self.symbol(stated, search_paths, &TABLES).map_or_else(|| self.unnamed(stated), |(name, _)| name)
                }
            };
            ResolvedFrame {
                function: function.into(),
                file: frame.file.map(Arc::from),
                line: frame.line,
                column: frame.column,
                is_inlined: index != last,
            }
        };
        Symbolized::Frames { frames: frames.into_iter().enumerate().map(frame).collect(), source: SymbolSource::Dwarf }
    }

    /// Resolves a function without a name to the start of its unwind entry.
    fn resolve_nameless(&self, stated: u64) -> Symbolized {
        match self.image.with(|elf| function_starts::start_of(elf, stated)) {
            Some(start) => one_frame(self.unnamed(start), SymbolSource::UnwindEntry),
            None => Symbolized::Unknown(UnresolvedReason::NoSymbol),
        }
    }

    fn unnamed(&self, start: u64) -> String {
        format!("{}+{start:#x}", self.name)
    }

    /// Returns the name of the symbol that contains `stated`, if it is mangled.
    fn mangled_symbol(&self, stated: u64, search_paths: &SearchPaths) -> Option<String> {
        let (name, _) = self.raw_symbol(stated, search_paths, &TABLES)?;
        is_mangled(&name).then(|| demangle(&name))
    }

    /// Returns the name of the symbol that contains `stated`, from the first table that has one.
    fn symbol(
        &self,
        stated: u64,
        search_paths: &SearchPaths,
        tables: &[(SymbolSource, TableKind)],
    ) -> Option<(String, SymbolSource)> {
        self.raw_symbol(stated, search_paths, tables).map(|(name, source)| (demangle(&name), source))
    }

    fn raw_symbol(
        &self,
        stated: u64,
        search_paths: &SearchPaths,
        tables: &[(SymbolSource, TableKind)],
    ) -> Option<(String, SymbolSource)> {
        tables.iter().find_map(|(source, table_kind)| {
            let table = self.table(*source, *table_kind, search_paths);
            let found = table.index.find(stated)?;
            if !found.is_sized && self.is_another_function(found.start, stated) {
                return None;
            }
            let name =
                table.image.as_ref()?.with(|elf| symbols::name(elf, *table_kind, found.name).map(str::to_owned))?;
            Some((name, *source))
        })
    }

    /// Returns whether the function at `stated` is different from the one that a symbol without a size names: its
    /// unwind entry begins after `start`, or it is in a different section.
    fn is_another_function(&self, start: u64, stated: u64) -> bool {
        self.image.with(|elf| {
            let begins = function_starts::start_of(elf, stated);
            begins.is_some_and(|begins| begins > start) || !elf::are_in_one_section(elf, start, stated)
        })
    }

    fn table(&self, source: SymbolSource, table_kind: TableKind, search_paths: &SearchPaths) -> &NamedTable {
        let slot = TABLES.iter().position(|table| table.0 == source).unwrap_or(0);
        self.tables[slot].get_or_init(|| {
            let own = || Some(Arc::clone(&self.image));
            let candidates = match source {
                SymbolSource::MiniDebugInfo => [self.image.with(mini_debug_info::extract).map(Arc::new), None],
                SymbolSource::DynamicSymbols => [own(), None],
                _ => [own(), self.debug_files(search_paths).main.clone()],
            };
            let mut tables = candidates.into_iter().flatten().map(|image| {
                let index = image.with(|elf| SymbolIndex::build(elf, table_kind));
                NamedTable { index, image: Some(image) }
            });
            tables.find(|table| !table.index.is_empty()).unwrap_or_default()
        })
    }

    fn dwarf(&self, search_paths: &SearchPaths) -> Option<&Dwarf> {
        self.dwarf
            .get_or_init(|| {
                let debug = self.debug_files(search_paths);
                let image = if self.image.with(dwarf::is_in) { &self.image } else { debug.main.as_ref()? };
                let supplement = debug.supplement.as_ref().map(|image| image.bytes().clone());
                Dwarf::open(image.bytes().clone(), supplement, self.path().map(package_path))
            })
            .as_ref()
    }

    fn debug_files(&self, search_paths: &SearchPaths) -> &DebugFiles {
        self.debug.get_or_init(|| DebugFiles::find(&self.image, self.path(), search_paths))
    }
}

/// Returns the path of a program's package of split debug information: `program.dwp`.
fn package_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".dwp");
    name.into()
}

/// Opens a file if it is an ELF file with the given build id, if there is one.
fn open_checked(path: &Path, wanted: Option<&BuildId>) -> Result<(ElfImage, FileIdentity), UnresolvedReason> {
    let file = MappedFile::open(path).map_err(|_| UnresolvedReason::MissingFile)?;
    let identity = file.identity();
    let image = ElfImage::parse(FileBytes::Mapped(Arc::new(file))).ok_or(UnresolvedReason::BadFile)?;
    let is_another = wanted.is_some_and(|wanted| image.build_id().as_ref() != Some(wanted));
    if is_another { Err(UnresolvedReason::ChangedFile) } else { Ok((image, identity)) }
}

fn one_frame(function: String, source: SymbolSource) -> Symbolized {
    let frame = ResolvedFrame { function: function.into(), file: None, line: None, column: None, is_inlined: false };
    Symbolized::Frames { frames: Box::new([frame]), source }
}
