//! Split debug information: `.dwo` files beside the objects, or one `.dwp` package beside the program.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::SplitDwarfLoad;
use gimli::{DwarfPackage, EndianSlice, LittleEndian, SectionId};
use stackweave_files::MappedFile;

use crate::byte_arena::{Arena, FileBytes};
use crate::dwarf::Slice;
use crate::elf;

/// The split files of a module, and the memory for their bytes.
#[derive(Debug)]
pub(crate) struct SplitFiles<'a> {
    kept: &'a Arena<FileBytes>,
    package_path: Option<PathBuf>,
    package: OnceCell<Option<DwarfPackage<Slice<'a>>>>,
}

type Loaded<'a> = Option<Arc<gimli::Dwarf<Slice<'a>>>>;

impl<'a> SplitFiles<'a> {
    /// Creates the split files of the program whose package, if it exists, is at `package_path`.
    pub(crate) fn new(kept: &'a Arena<FileBytes>, package_path: Option<PathBuf>) -> Self {
        Self { kept, package_path, package: OnceCell::new() }
    }

    /// Returns the `wanted` unit; `None` if it is not found.
    pub(crate) fn find(&self, wanted: &SplitDwarfLoad<Slice<'a>>) -> Loaded<'a> {
        self.find_in_package(wanted).or_else(|| self.find_file(wanted))
    }

    fn find_in_package(&self, wanted: &SplitDwarfLoad<Slice<'a>>) -> Loaded<'a> {
        let package = self.package.get_or_init(|| {
            let sections = self.sections(self.package_path.as_deref()?)?;
            DwarfPackage::load(|id| Ok::<_, gimli::Error>(sections(id)), EndianSlice::new(&[], LittleEndian)).ok()
        });
        package.as_ref()?.find_cu(wanted.dwo_id, &wanted.parent).ok()?.map(Arc::new)
    }

    fn find_file(&self, wanted: &SplitDwarfLoad<Slice<'a>>) -> Loaded<'a> {
        let as_path = |slice: &Slice<'a>| std::str::from_utf8(slice.slice()).map(Path::new).ok();
        let file = as_path(wanted.path.as_ref()?)?;
        let folder = wanted.comp_dir.as_ref().and_then(as_path).unwrap_or(Path::new(""));
        let sections = self.sections(&folder.join(file))?;
        let mut dwarf = gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(sections(id))).ok()?;
        dwarf.make_dwo(&wanted.parent);
        Some(Arc::new(dwarf))
    }

    /// Returns the split sections of the file at `path`, by their ids.
    fn sections(&self, path: &Path) -> Option<impl Fn(SectionId) -> Slice<'a> + use<'a>> {
        let kept = self.kept;
        let file = MappedFile::open_copied(path).ok()?;
        let elf = elf::parse(kept.push(FileBytes::Mapped(Arc::new(file))))?;
        Some(move |id: SectionId| {
            let data = id.dwo_name().map_or(&[][..], |name| elf::section(&elf, name, kept));
            EndianSlice::new(data, LittleEndian)
        })
    }
}
