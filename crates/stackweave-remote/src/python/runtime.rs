//! Finds the interpreter of a process.

use object::ReadCache;
use stackweave_cpython::Unavailable;
use stackweave_cpython::layout::{ListsLayout, VersionLayout, is_plausible};

use super::elf::ElfFile;
use super::maps::code_mappings;
use super::snapshot::{PageSnapshot, PageSource};
use super::version::Version;
use crate::maps::Mapping;

/// The interpreter of a process.
#[derive(Debug)]
pub(super) struct Runtime {
    /// The address of `_PyRuntime`.
    pub(super) address: u64,
    pub(super) version: Version,
    pub(super) layout: &'static VersionLayout,
    pub(super) lists: ListsLayout,
    /// Whether greenlets may be in use.
    pub(super) has_greenlets: bool,
}

/// Exported symbols of an interpreter. Those after the first identify the kind of build.
const SYMBOLS: [&str; 5] = ["_PyRuntime", "Py_Version", "Py_NewRef", "_Py_RefTotal", "_Py_INCREF_IncRefTotal"];

/// The symbols of an interpreter, at their addresses.
struct FoundSymbols {
    runtime: u64,
    version: Option<u64>,
    /// Whether it has a symbol that is new in 3.10.
    is_3_10_or_later: bool,
    is_debug_build: bool,
    /// The texts of the file, which are the only place where 3.10 states its version.
    texts: Vec<u8>,
}

/// Finds the interpreter of a process, or returns one sentence that says why there is none.
pub(super) fn find(process: u32, memory: &dyn PageSource) -> Result<Runtime, String> {
    let mappings = code_mappings(process)
        .map_err(|error| format!("the memory map of process {process} can't be read: {error}"))?;
    let has_greenlets = mappings.iter().any(is_greenlet);
    let snapshot = PageSnapshot::new(memory);
    let mut first = None;
    for found in in_likely_order(mappings).iter().filter_map(|mapping| read_symbols(process, mapping)) {
        let runtime = found.check(&snapshot).map(|runtime| Runtime { has_greenlets, ..runtime });
        // A process may contain one interpreter that it does not run, besides the one that it runs.
        if runtime.as_ref().is_ok_and(|runtime| runtime.has_started(&snapshot)) {
            return runtime;
        }
        first = first.or(Some(runtime));
    }
    first.unwrap_or_else(|| Err(format!("no CPython was found in process {process}")))
}

/// Sorts mappings by likelihood: most interpreters have a typical name; others are part of some program.
fn in_likely_order(mut mappings: Vec<Mapping>) -> Vec<Mapping> {
    mappings.sort_by_key(|mapping| !mapping.is_named_python());
    mappings
}

fn is_greenlet(mapping: &Mapping) -> bool {
    mapping.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("_greenlet"))
}

fn read_symbols(process: u32, mapping: &Mapping) -> Option<FoundSymbols> {
    let cache = ReadCache::new(mapping.open(process)?);
    let file = ElfFile::parse(&cache, mapping)?;
    let in_all = || if mapping.is_named_python() { file.all(SYMBOLS) } else { None };
    let [runtime, version, new_in_3_10, debug, debug_from_3_12] = file.exported(SYMBOLS).or_else(in_all)?;
    Some(FoundSymbols {
        runtime: runtime?,
        version,
        is_3_10_or_later: new_in_3_10.is_some(),
        is_debug_build: debug.is_some() || debug_from_3_12.is_some(),
        texts: if version.is_none() { file.constants().unwrap_or_default().to_owned() } else { Vec::new() },
    })
}

impl FoundSymbols {
    fn check(&self, snapshot: &PageSnapshot<'_>) -> Result<Runtime, String> {
        let version = self.version(snapshot)?;
        let Version { major, minor, .. } = version;
        let unsupported = || Unavailable::UnsupportedVersion { major, minor }.to_string();
        let layout = VersionLayout::of_minor(minor).ok_or_else(unsupported)?;
        if self.is_debug_build {
            return Err(Unavailable::DebugBuild.to_string());
        }
        let mut record = [0; VersionLayout::RUNTIME_BYTES];
        snapshot.read(self.runtime, &mut record).ok_or("the memory of the process can't be read")?;
        let lists = layout.reported_lists(&record).map_err(|reason| reason.to_string())?;
        Ok(Runtime { address: self.runtime, version, layout, lists, has_greenlets: false })
    }

    fn version(&self, snapshot: &PageSnapshot<'_>) -> Result<Version, String> {
        if let Some(address) = self.version {
            let word = snapshot.word(address, 0).ok_or("the memory of the process can't be read")?;
            return Version::of_word(word).ok_or_else(|| format!("{word:#x} is not a known version of Python"));
        }
        if self.is_3_10_or_later {
            return Ok(Version::of_3_10(&self.texts));
        }
        let (oldest, newest) = (VersionLayout::OLDEST, VersionLayout::NEWEST);
        Err(format!("it runs a Python older than 3.{oldest}; 3.{oldest} to 3.{newest} are known"))
    }
}

impl Runtime {
    fn has_started(&self, snapshot: &PageSnapshot<'_>) -> bool {
        snapshot.word(self.address, self.lists.interpreters).is_some_and(is_plausible)
    }
}
