//! Finds a module's bytes and debug information, if they are not in its file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::{Object as _, ObjectSection as _};
use stackweave_core::Module;

use crate::byte_arena::FileBytes;
use crate::debug_link::{AltLink, DebugLink, alt_file_candidates, debug_file_candidates};
use crate::debuginfod::Debuginfod;
use crate::dwarf;
use crate::elf::{Elf, ElfImage};
use crate::options::SymbolizerOptions;

/// The folders to search.
#[derive(Debug)]
pub(crate) struct SearchPaths {
    pub(crate) options: SymbolizerOptions,
    debuginfod: Option<Debuginfod>,
}

impl SearchPaths {
    pub(crate) fn new(options: SymbolizerOptions) -> Self {
        let debuginfod = if options.debuginfod { Debuginfod::from_environment() } else { None };
        Self { options, debuginfod }
    }
}

/// The debug files of a module.
#[derive(Debug, Default)]
pub(crate) struct DebugFiles {
    /// Debug information and symbols that were split off from the file.
    pub(crate) main: Option<Arc<ElfImage>>,
    /// Debug information that `dwz` moved from several files to one.
    pub(crate) supplement: Option<ElfImage>,
}

impl DebugFiles {
    /// Finds the debug files of the module with this file.
    pub(crate) fn find(image: &ElfImage, path: Option<&Path>, search_paths: &SearchPaths) -> Self {
        let path = path.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let main = if image.with(dwarf::is_in) { None } else { find_main(image, path.as_deref(), search_paths) };
        let supplement = match &main {
            Some((main, path)) => main.with(|elf| find_supplement(elf, path, search_paths)),
            None => image.with(|elf| find_supplement(elf, path.as_deref()?, search_paths)),
        };
        Self { main: main.map(|(main, _)| Arc::new(main)), supplement }
    }
}

/// Returns the debug file of `image`: from this machine, otherwise from a server. A build id must be equal; a file
/// that only a link names must have the right checksum.
fn find_main(image: &ElfImage, path: Option<&Path>, search_paths: &SearchPaths) -> Option<(ElfImage, PathBuf)> {
    let id = image.build_id();
    let link = image.with(|elf| DebugLink::parse(section(elf, ".gnu_debuglink")?));
    let path = path.unwrap_or(Path::new(""));
    let candidates = debug_file_candidates(path, id.as_ref(), link.as_ref(), &search_paths.options.debug_folders);
    let is_right = |image: &ElfImage| match (&id, image.build_id()) {
        (Some(id), Some(found)) => *id == found,
        _ => link.as_ref().is_some_and(|link| link.matches(image.bytes())),
    };
    let found = candidates.into_iter().filter_map(open).find(|(image, _)| is_right(image));
    found.or_else(|| {
        let fetched = search_paths.debuginfod.as_ref()?.fetch_debug_info(id.as_ref()?).ok()?;
        open(fetched).filter(|(image, _)| is_right(image))
    })
}

fn find_supplement(elf: &Elf<'_>, holder: &Path, search_paths: &SearchPaths) -> Option<ElfImage> {
    let link = AltLink::parse(section(elf, ".gnu_debugaltlink")?)?;
    let candidates = alt_file_candidates(holder, &link, &search_paths.options.debug_folders);
    let mut images = candidates.into_iter().filter_map(open).map(|(image, _)| image);
    images.find(|image| image.build_id().as_ref() == Some(&link.build_id))
}

fn section<'a>(elf: &Elf<'a>, name: &str) -> Option<&'a [u8]> {
    elf.section_by_name(name)?.data().ok()
}

fn open(path: PathBuf) -> Option<(ElfImage, PathBuf)> {
    ElfImage::open(&path).map(|image| (image, path))
}

/// Returns the paths under a folder of the search path where a module's file may be: its full path, its name, its
/// build id.
pub(crate) fn candidate_paths<'a>(folder: &'a Path, module: &'a Module) -> impl Iterator<Item = PathBuf> + 'a {
    let whole = module.path.strip_prefix("/").ok().map(|path| folder.join(path));
    let name = module.path.file_name().map(|name| folder.join(name));
    let id = module.build_id.as_ref().map(|id| folder.join(id.to_string()));
    [whole, name, id].into_iter().flatten()
}

/// Returns whether a module is provided by the kernel, without a file.
pub(crate) fn is_kernels(path: &Path) -> bool {
    path.as_os_str() == "[vdso]" || path.as_os_str() == "linux-vdso.so.1"
}

/// Reads the bytes of a module of this process from memory.
pub(crate) fn read_from_memory(module: &Module) -> Option<ElfImage> {
    const LARGEST: u64 = 1 << 20;
    let length = module.end.checked_sub(module.start).filter(|length| *length <= LARGEST)?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, module.start).ok()?;
    ElfImage::parse(FileBytes::Owned(bytes.into()))
}
