//! The modules of another process: their mappings, files, unwind tables and names.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackweave_core::Module;

use crate::image::{self, HEAD, ModuleImage};
use crate::maps::{self, Mapping};
use crate::memory::RemoteMemory;
use crate::process::Process;

/// A module of the process.
#[derive(Clone, Debug)]
pub(crate) struct RemoteModule {
    /// The module as it is mapped in the process.
    pub(crate) module: Module,
    /// A path to its file that can be opened from here; `None` if there is none.
    pub(crate) file: Option<PathBuf>,
    pub(crate) image: Arc<ModuleImage>,
}

/// The modules of a process, by address, and their opened files.
#[derive(Debug)]
pub(crate) struct Modules {
    process: Process,
    /// The mappings of files.
    maps: Vec<Mapping>,
    loaded: Vec<RemoteModule>,
    opened: HashMap<FileKey, OpenedModule>,
}

/// Path, inode, and first page of a mapping.
type FileKey = (PathBuf, u64, Vec<u8>);
/// The path of the opened file, if there is one, and its contents.
type OpenedModule = (Option<PathBuf>, Arc<ModuleImage>);

impl Modules {
    pub(crate) fn of(process: Process) -> Self {
        let mut modules = Self { process, maps: Vec::new(), loaded: Vec::new(), opened: HashMap::new() };
        modules.refresh();
        modules
    }

    /// Reads the mappings again, and returns whether the mapped files have changed. Opened files are not opened
    /// again.
    pub(crate) fn refresh(&mut self) -> bool {
        let mut maps = maps::parse(&fs::read(self.process.file("maps")).unwrap_or_default());
        maps.retain(|mapping| mapping.is_of_file() || mapping.is_vdso());
        if maps == self.maps {
            return false;
        }
        self.maps.clone_from(&maps);
        let mut modules = Vec::new();
        let mut rest = maps.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if first.offset == 0 && (first.is_of_file() || first.is_vdso()) {
                let run = run_of(first, after);
                modules.extend(self.module(first, run));
            }
        }
        modules.sort_by_key(|module: &RemoteModule| module.module.start);
        self.loaded = modules;
        true
    }

    /// Returns the module that holds this address.
    pub(crate) fn find(&self, address: u64) -> Option<&RemoteModule> {
        let index = self.loaded.partition_point(|module| module.module.start <= address).checked_sub(1)?;
        self.loaded.get(index).filter(|module| module.module.contains(address))
    }

    pub(crate) fn as_slice(&self) -> &[RemoteModule] {
        &self.loaded
    }

    /// Returns the module whose first mapping is `first`; `None` if the mappings are data or not executable.
    fn module(&mut self, first: &Mapping, run: &[Mapping]) -> Option<RemoteModule> {
        if !first.is_executable && !run.iter().any(|mapping| mapping.is_executable) {
            return None;
        }
        let memory = RemoteMemory::of(self.process.number);
        let mut head = vec![0; HEAD];
        if memory.read(first.start, &mut head).is_none() {
            // Without permission to read, the path has to be trusted.
            head.clear();
        }
        let key = (first.path.clone(), first.inode, head);
        let (file, image) = if let Some(opened) = self.opened.get(&key) {
            opened.clone()
        } else {
            let opened = self.open(first, run, &key.2)?;
            self.opened.entry(key).or_insert(opened).clone()
        };
        let lowest = image.loads().iter().map(|load| load.stated).min()?;
        let highest = image.loads().iter().map(|load| load.stated.saturating_add(load.size)).max()?;
        let bias = first.start.wrapping_sub(lowest / PAGE * PAGE);
        let (start, end) = (bias.wrapping_add(lowest), bias.wrapping_add(highest));
        let module = Module { path: shown_path(first, &image), build_id: image.build_id.clone(), bias, start, end };
        Some(RemoteModule { module, file, image })
    }

    /// Opens the file of a mapping if it is the mapped one, otherwise reads the module from memory.
    fn open(&self, first: &Mapping, run: &[Mapping], head: &[u8]) -> Option<OpenedModule> {
        if first.is_of_file() {
            // If it cannot be compared, the path alone decides.
            let is_sure = |path: &PathBuf| !head.is_empty() || !path.ends_with("exe");
            for path in self.candidate_paths(first).into_iter().filter(is_sure) {
                if let Some(image) = ModuleImage::of_file(&path, head) {
                    return Some((Some(path), Arc::new(image)));
                }
            }
        }
        self.read_from_memory(first, run, head).map(|image| (None, image))
    }

    /// Returns the paths where the file of a mapping may be found: its own path if that is the same file here, the
    /// path as the process sees it, and the kernel's link to the open file.
    fn candidate_paths(&self, mapping: &Mapping) -> Vec<PathBuf> {
        let inside = self.process.file("root").join(mapping.path.strip_prefix("/").unwrap_or(&mapping.path));
        let mapped_file = self.process.file(&format!("map_files/{:x}-{:x}", mapping.start, mapping.end));
        // It is used if it is the same file; if the kernel's list of mappings may not be read, it may be the only
        // one.
        let program = self.process.file("exe");
        if mapping.is_deleted {
            return vec![mapped_file, program];
        }
        let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let here = identity(&mapping.path);
        if here.is_some() && here == identity(&inside) {
            vec![mapping.path.clone(), mapped_file]
        } else {
            vec![inside, mapped_file, mapping.path.clone(), program]
        }
    }

    /// Reads the whole module from memory: for the kernel's own module, and for files that can no longer be
    /// opened.
    fn read_from_memory(&self, first: &Mapping, run: &[Mapping], head: &[u8]) -> Option<Arc<ModuleImage>> {
        const LARGEST: u64 = 1 << 28;
        let loads = image::loads(head)?;
        let lowest = loads.iter().map(|load| load.stated).min()? / PAGE * PAGE;
        let size = loads.iter().map(|load| load.stated.saturating_add(load.size)).max()?.checked_sub(lowest)?;
        if size > LARGEST {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        let memory = RemoteMemory::of(self.process.number);
        for mapping in std::iter::once(first).chain(run) {
            let start = usize::try_from(mapping.start - first.start).ok()?;
            let end = usize::try_from(mapping.end - first.start).ok()?.min(bytes.len());
            if let Some(part) = bytes.get_mut(start..end) {
                // A part that may not be read stays empty.
                let _ = memory.read(mapping.start, part);
            }
        }
        ModuleImage::of_memory(bytes.into())
    }
}

const PAGE: u64 = 4096;

/// Returns the mappings after `first`, which are all of files, that belong to the same file, until it begins
/// again.
fn run_of<'a>(first: &Mapping, after: &'a [Mapping]) -> &'a [Mapping] {
    let is_other =
        |mapping: &Mapping| (mapping.inode, &mapping.path) != (first.inode, &first.path) || mapping.offset == 0;
    &after[..after.iter().position(is_other).unwrap_or(after.len())]
}

/// Returns the path of a module as the loader knows it: for example `libz.so.1`, the link to `libz.so.1.2.13` by
/// which other modules refer to it.
fn shown_path(mapping: &Mapping, image: &ModuleImage) -> PathBuf {
    let name = mapping.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match &image.soname {
        Some(soname) if name.len() > soname.len() && name.starts_with(soname.as_str()) => {
            mapping.path.with_file_name(soname)
        }
        _ => mapping.path.clone(),
    }
}
