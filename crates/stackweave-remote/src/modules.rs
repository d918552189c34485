//! The modules of another process: what is mapped, which files that is, and where unwind tables and names are.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackweave_core::Module;

use crate::image::{self, HEAD, Image};
use crate::maps::{self, Mapping};
use crate::memory::ProcessMemory;
use crate::process::Process;

/// A module of the process.
#[derive(Clone, Debug)]
pub(crate) struct RemoteModule {
    /// As the process has it.
    pub(crate) module: Module,
    /// Where its file can be opened from here; `None` if it is nowhere.
    pub(crate) file: Option<PathBuf>,
    pub(crate) image: Arc<Image>,
}

/// The modules of a process, by address, and what was opened for them.
#[derive(Debug)]
pub(crate) struct Modules {
    process: Process,
    /// Where files are mapped.
    maps: Vec<Mapping>,
    loaded: Vec<RemoteModule>,
    opened: HashMap<FileKey, Opened>,
}

/// Path, number, and first page of what is mapped.
type FileKey = (PathBuf, u64, Vec<u8>);
/// Where it was opened, if it has a file, and what is in it.
type Opened = (Option<PathBuf>, Arc<Image>);

impl Modules {
    pub(crate) fn of(process: Process) -> Self {
        let mut modules = Self { process, maps: Vec::new(), loaded: Vec::new(), opened: HashMap::new() };
        modules.look_again();
        modules
    }

    /// Reads anew what is mapped, and says whether other files are than before. What was opened before is not opened
    /// again.
    pub(crate) fn look_again(&mut self) -> bool {
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

    /// The module that holds this address.
    pub(crate) fn find(&self, address: u64) -> Option<&RemoteModule> {
        let index = self.loaded.partition_point(|module| module.module.start <= address).checked_sub(1)?;
        self.loaded.get(index).filter(|module| module.module.contains(address))
    }

    pub(crate) fn as_slice(&self) -> &[RemoteModule] {
        &self.loaded
    }

    /// The module whose first mapping is `first`; `None` if it is none, but data or not executable.
    fn module(&mut self, first: &Mapping, run: &[Mapping]) -> Option<RemoteModule> {
        if !first.is_executable && !run.iter().any(|mapping| mapping.is_executable) {
            return None;
        }
        let memory = ProcessMemory::of(self.process.number);
        let mut head = vec![0; HEAD];
        if memory.read(first.start, &mut head).is_none() {
            // Whoever may not read it has to trust the path.
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

    /// Its file if that can be opened and is the one that is mapped, else what is in memory.
    fn open(&self, first: &Mapping, run: &[Mapping], head: &[u8]) -> Option<Opened> {
        if first.is_of_file() {
            // What can't be compared is found by its path alone.
            let is_sure = |path: &PathBuf| !head.is_empty() || !path.ends_with("exe");
            for path in self.places_of(first).into_iter().filter(is_sure) {
                if let Some(image) = Image::of_file(&path, head) {
                    return Some((Some(path), Arc::new(image)));
                }
            }
        }
        self.read_from_memory(first, run, head).map(|image| (None, image))
    }

    /// Where the file of a mapping may be found: at its own path if that is the same file here as there, else as the
    /// process sees it, else as the kernel holds it.
    fn places_of(&self, mapping: &Mapping) -> Vec<PathBuf> {
        let inside = self.process.file("root").join(mapping.path.strip_prefix("/").unwrap_or(&mapping.path));
        let held = self.process.file(&format!("map_files/{:x}-{:x}", mapping.start, mapping.end));
        // It is taken if it is the same; where the kernel's list of mappings may not be read, it may be all there is.
        let program = self.process.file("exe");
        if mapping.is_deleted {
            return vec![held, program];
        }
        let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let here = identity(&mapping.path);
        if here.is_some() && here == identity(&inside) {
            vec![mapping.path.clone(), held]
        } else {
            vec![inside, held, mapping.path.clone(), program]
        }
    }

    /// The whole module as it lies in memory: for the kernel's own, and for files that nobody can open any more.
    fn read_from_memory(&self, first: &Mapping, run: &[Mapping], head: &[u8]) -> Option<Arc<Image>> {
        const LARGEST: u64 = 1 << 28;
        let loads = image::loads(head)?;
        let lowest = loads.iter().map(|load| load.stated).min()? / PAGE * PAGE;
        let size = loads.iter().map(|load| load.stated.saturating_add(load.size)).max()?.checked_sub(lowest)?;
        if size > LARGEST {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        let memory = ProcessMemory::of(self.process.number);
        for mapping in std::iter::once(first).chain(run) {
            let start = usize::try_from(mapping.start - first.start).ok()?;
            let end = usize::try_from(mapping.end - first.start).ok()?.min(bytes.len());
            if let Some(part) = bytes.get_mut(start..end) {
                // A part without the right to read it stays empty.
                let _ = memory.read(mapping.start, part);
            }
        }
        Image::of_memory(bytes.into())
    }
}

const PAGE: u64 = 4096;

/// The mappings after `first`, which are all of files, that are of the same one, until that begins anew.
fn run_of<'a>(first: &Mapping, after: &'a [Mapping]) -> &'a [Mapping] {
    let is_other =
        |mapping: &Mapping| (mapping.inode, &mapping.path) != (first.inode, &first.path) || mapping.offset == 0;
    &after[..after.iter().position(is_other).unwrap_or(after.len())]
}

/// The loader knows `libz.so.1.2.13` by the link `libz.so.1`, which is its name for others, and so it is known here.
fn shown_path(mapping: &Mapping, image: &Image) -> PathBuf {
    let name = mapping.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match &image.soname {
        Some(soname) if name.len() > soname.len() && name.starts_with(soname.as_str()) => {
            mapping.path.with_file_name(soname)
        }
        _ => mapping.path.clone(),
    }
}
