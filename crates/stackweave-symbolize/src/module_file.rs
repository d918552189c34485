//! The file of one module, which is read as needed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stackweave_core::{BuildId, Module};
use stackweave_files::{FileIdentity, MappedFile};

use crate::byte_arena::FileBytes;
use crate::debug_files::{self, SearchPaths};
use crate::elf::ElfImage;
use crate::module_lookup::{Contents, ModuleLookup};
use crate::resolved::{Symbolized, UnresolvedReason};

/// The file of one module.
#[derive(Debug)]
pub(crate) struct ModuleFile {
    /// The module's name, for functions without names.
    pub(crate) name: Arc<str>,
    pub(crate) image: Arc<ElfImage>,
    /// The path and identity of the opened file, unless the bytes are the kernel's own.
    opened: Option<(PathBuf, FileIdentity)>,
    has_build_id: bool,
    contents: Mutex<Arc<Contents>>,
}

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
        Self { name, image: Arc::new(image), opened, has_build_id, contents: Mutex::default() }
    }

    /// Returns whether the data is still valid for the module. A deleted file remains valid, and so does a
    /// replaced one if the module has a build id; a file that was written to does not.
    pub(crate) fn is_current(&self) -> bool {
        let Some((path, identity)) = &self.opened else { return true };
        let Ok(now) = FileIdentity::of_path(path) else { return true };
        now == *identity || (self.has_build_id && !now.is_same_file(identity))
    }

    /// Resolves sorted addresses. If `search_paths` say so, what was read for them is not kept.
    pub(crate) fn resolve(&self, stated: &[u64], search_paths: &SearchPaths) -> Vec<Symbolized> {
        let contents = Arc::clone(&self.contents.lock().unwrap_or_else(PoisonError::into_inner));
        let lookup = ModuleLookup::new(self, &contents, search_paths);
        let resolved = lookup.resolve(stated);
        if !search_paths.options.keeps_files {
            lookup.release();
            *self.contents.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
        }
        resolved
    }

    /// Returns the file's path.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.opened.as_ref().map(|(path, _)| path.as_path())
    }
}

/// Opens a file if it is an ELF file with the given build id, if there is one.
fn open_checked(path: &Path, wanted: Option<&BuildId>) -> Result<(ElfImage, FileIdentity), UnresolvedReason> {
    let file = MappedFile::open(path).map_err(|_| UnresolvedReason::MissingFile)?;
    let identity = file.identity();
    let image = ElfImage::parse(FileBytes::Mapped(Arc::new(file))).ok_or(UnresolvedReason::BadFile)?;
    let is_another = wanted.is_some_and(|wanted| image.build_id().as_ref() != Some(wanted));
    if is_another { Err(UnresolvedReason::ChangedFile) } else { Ok((image, identity)) }
}
