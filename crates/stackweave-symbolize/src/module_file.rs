//! Everything known of one module's file, read as it is asked for and then kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use stackweave_core::{BuildId, Module};
use stackweave_files::{FileIdentity, MappedFile};

use crate::byte_arena::Bytes;
use crate::debug_file::{self, DebugFiles, Places};
use crate::demangle::{demangle, is_mangled};
use crate::dwarf::{self, Dwarf, DwarfFrame};
use crate::elf::{self, ElfImage};
use crate::function_starts;
use crate::mini_debug_info;
use crate::resolved::{Frame, Reason, Source, Symbolized};
use crate::symbols::{self, SymbolIndex, Which};

/// One module's file.
#[derive(Debug)]
pub(crate) struct ModuleFile {
    /// The module's name, for functions that have none.
    name: Arc<str>,
    image: Arc<ElfImage>,
    /// The file that was opened, unless the bytes are the kernel's own.
    opened: Option<(PathBuf, FileIdentity)>,
    has_build_id: bool,
    debug: OnceLock<DebugFiles>,
    dwarf: OnceLock<Option<Dwarf>>,
    tables: [OnceLock<NamedTable>; 3],
}

/// A symbol table and the file that holds it.
#[derive(Debug, Default)]
struct NamedTable {
    index: SymbolIndex,
    image: Option<Arc<ElfImage>>,
}

/// The tables in the order in which they are asked, best first.
const TABLES: [(Source, Which); 3] = [
    (Source::SymbolTable, Which::Symtab),
    (Source::MiniDebugInfo, Which::Symtab),
    (Source::DynamicSymbols, Which::Dynsym),
];

impl ModuleFile {
    /// Opens the file of `module`: at its own path, or on the search path.
    pub(crate) fn open(module: &Module, places: &Places) -> Result<Self, Reason> {
        let name = Arc::from(module.name());
        if debug_file::is_kernels(&module.path) {
            let image = debug_file::read_from_memory(module).ok_or(Reason::MissingFile)?;
            return Ok(Self::new(name, image, None, true));
        }
        let elsewhere = places.options.search_path.iter().flat_map(|folder| debug_file::places_in(folder, module));
        let mut reason = Reason::MissingFile;
        for path in std::iter::once(module.path.clone()).chain(elsewhere) {
            match open_checked(&path, module.build_id.as_ref()) {
                Ok((image, identity)) => {
                    return Ok(Self::new(name, image, Some((path, identity)), module.build_id.is_some()));
                }
                Err(Reason::MissingFile) => {}
                Err(other) => reason = other,
            }
        }
        Err(reason)
    }

    fn new(name: Arc<str>, image: ElfImage, opened: Option<(PathBuf, FileIdentity)>, has_build_id: bool) -> Self {
        let (debug, dwarf, tables) = Default::default();
        Self { name, image: Arc::new(image), opened, has_build_id, debug, dwarf, tables }
    }

    /// Whether what was read is still true of the module. A file that is gone stays, and so does one whose
    /// place another has taken, if the module is known by its build id; one that was written to does not.
    pub(crate) fn is_current(&self) -> bool {
        let Some((path, identity)) = &self.opened else { return true };
        let Ok(now) = FileIdentity::of_path(path) else { return true };
        now == *identity || (self.has_build_id && !now.is_same_file(identity))
    }

    /// What is at `stated`.
    pub(crate) fn resolve(&self, stated: u64, places: &Places) -> Symbolized {
        let frames = self.dwarf(places).map(|dwarf| dwarf.frames(stated)).unwrap_or_default();
        if !frames.is_empty() {
            return self.frames_of_dwarf(frames, stated, places);
        }
        if let Some((function, source)) = self.symbol(stated, places, &TABLES) {
            return one_frame(function, source);
        }
        self.resolve_nameless(stated)
    }

    /// What `dladdr` would say: exported names only.
    pub(crate) fn resolve_exported(&self, stated: u64, places: &Places) -> Symbolized {
        match self.symbol(stated, places, &TABLES[2..]) {
            Some((function, source)) => one_frame(function, source),
            None => self.resolve_nameless(stated),
        }
    }

    /// The file's path, for a child process.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.opened.as_ref().map(|(path, _)| path.as_path())
    }

    fn frames_of_dwarf(&self, frames: Vec<DwarfFrame>, stated: u64, places: &Places) -> Symbolized {
        let last = frames.len() - 1;
        let frame = |(index, frame): (usize, DwarfFrame)| {
            let function = match frame.function {
                // A function that is not seen outside its file has no linkage name: its symbol has its scopes.
                Some(name) if index == last && frame.may_lack_scopes && !is_mangled(&name) => {
                    self.mangled_symbol(stated, places).unwrap_or(name)
                }
                Some(name) => demangle(&name),
                None => self.symbol(stated, places, &TABLES).map_or_else(|| self.unnamed(stated), |(name, _)| name),
            };
            Frame {
                function: function.into(),
                file: frame.file.map(Arc::from),
                line: frame.line,
                column: frame.column,
                is_inlined: index != last,
            }
        };
        Symbolized::Frames { frames: frames.into_iter().enumerate().map(frame).collect(), source: Source::Dwarf }
    }

    /// A function without a name, by where its unwind entry begins.
    fn resolve_nameless(&self, stated: u64) -> Symbolized {
        match self.image.with(|elf| function_starts::start_of(elf, stated)) {
            Some(start) => one_frame(self.unnamed(start), Source::UnwindEntry),
            None => Symbolized::Unknown(Reason::NoSymbol),
        }
    }

    fn unnamed(&self, start: u64) -> String {
        format!("{}+{start:#x}", self.name)
    }

    /// The name of the symbol that holds `stated`, if that is a mangled one.
    fn mangled_symbol(&self, stated: u64, places: &Places) -> Option<String> {
        let (name, _) = self.raw_symbol(stated, places, &TABLES)?;
        is_mangled(&name).then(|| demangle(&name))
    }

    /// The name of the symbol that holds `stated`, from the first table that has one.
    fn symbol(&self, stated: u64, places: &Places, tables: &[(Source, Which)]) -> Option<(String, Source)> {
        self.raw_symbol(stated, places, tables).map(|(name, source)| (demangle(&name), source))
    }

    fn raw_symbol(&self, stated: u64, places: &Places, tables: &[(Source, Which)]) -> Option<(String, Source)> {
        tables.iter().find_map(|(source, which)| {
            let table = self.table(*source, *which, places);
            let found = table.index.find(stated)?;
            if !found.is_sized && self.is_another_function(found.start, stated) {
                return None;
            }
            let name = table.image.as_ref()?.with(|elf| symbols::name(elf, *which, found.name).map(str::to_owned))?;
            Some((name, *source))
        })
    }

    /// Whether the function at `stated` is not the one that a symbol without a size names: its unwind entry says
    /// that it begins after `start`, or it is in another section.
    fn is_another_function(&self, start: u64, stated: u64) -> bool {
        self.image.with(|elf| {
            let begins = function_starts::start_of(elf, stated);
            begins.is_some_and(|begins| begins > start) || !elf::are_in_one_section(elf, start, stated)
        })
    }

    fn table(&self, source: Source, which: Which, places: &Places) -> &NamedTable {
        let slot = TABLES.iter().position(|table| table.0 == source).unwrap_or(0);
        self.tables[slot].get_or_init(|| {
            let own = || Some(Arc::clone(&self.image));
            let candidates = match source {
                Source::MiniDebugInfo => [self.image.with(mini_debug_info::extract).map(Arc::new), None],
                Source::DynamicSymbols => [own(), None],
                _ => [own(), self.debug_files(places).main.clone()],
            };
            let mut tables = candidates.into_iter().flatten().map(|image| {
                let index = image.with(|elf| SymbolIndex::build(elf, which));
                NamedTable { index, image: Some(image) }
            });
            tables.find(|table| !table.index.is_empty()).unwrap_or_default()
        })
    }

    fn dwarf(&self, places: &Places) -> Option<&Dwarf> {
        self.dwarf
            .get_or_init(|| {
                let debug = self.debug_files(places);
                let image = if self.image.with(dwarf::is_in) { &self.image } else { debug.main.as_ref()? };
                let supplement = debug.supplement.as_ref().map(|image| image.bytes().clone());
                Dwarf::open(image.bytes().clone(), supplement, self.path().map(package_path))
            })
            .as_ref()
    }

    fn debug_files(&self, places: &Places) -> &DebugFiles {
        self.debug.get_or_init(|| DebugFiles::find(&self.image, self.path(), places))
    }
}

/// Where a program's package of split debug information lies: `program.dwp`.
fn package_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".dwp");
    name.into()
}

/// Opens a file if it is an ELF file and, where a build id is given, has that one.
fn open_checked(path: &Path, wanted: Option<&BuildId>) -> Result<(ElfImage, FileIdentity), Reason> {
    let file = MappedFile::open(path).map_err(|_| Reason::MissingFile)?;
    let identity = file.identity();
    let image = ElfImage::parse(Bytes::Mapped(Arc::new(file))).ok_or(Reason::BadFile)?;
    let is_another = wanted.is_some_and(|wanted| image.build_id().as_ref() != Some(wanted));
    if is_another { Err(Reason::ChangedFile) } else { Ok((image, identity)) }
}

fn one_frame(function: String, source: Source) -> Symbolized {
    let frame = Frame { function: function.into(), file: None, line: None, column: None, is_inlined: false };
    Symbolized::Frames { frames: Box::new([frame]), source }
}
