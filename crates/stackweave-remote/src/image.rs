//! The bytes of a module: from its file, or from the memory to which it was loaded.

use std::path::Path;
use std::sync::Arc;

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use stackweave_core::BuildId;
use stackweave_files::MappedFile;
use stackweave_unwind::stepping::UnwindTable;

/// The parts of a module that walks and the resolution of names need.
#[derive(Debug)]
pub(crate) struct ModuleImage {
    bytes: ImageBytes,
    loads: Vec<LoadSegment>,
    /// The stated address of `.eh_frame_hdr`.
    unwind_header: Option<u64>,
    pub(crate) build_id: Option<BuildId>,
    /// Its library name, by which dependent libraries refer to it.
    pub(crate) soname: Option<String>,
}

#[derive(Debug)]
enum ImageBytes {
    Mapped(MappedFile),
    Read(Box<[u8]>),
}

impl ImageBytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(file) => file,
            Self::Read(bytes) => bytes,
        }
    }
}

/// A loadable segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadSegment {
    /// Its start, as the file states it.
    pub(crate) stated: u64,
    /// Its size in memory.
    pub(crate) size: u64,
    /// Its offset in the file.
    pub(crate) offset: u64,
    /// Its size in the file.
    file_size: u64,
}

/// The size of a module's first page: headers and, almost always, the build id.
pub(crate) const HEAD: usize = 4096;

type Header = FileHeader64<LittleEndian>;
type Entry = elf::Dyn64<LittleEndian>;
type Segment = ProgramHeader64<LittleEndian>;

impl ModuleImage {
    /// Opens the file at `path`, if it begins like the module in memory: with `head`.
    pub(crate) fn of_file(path: &Path, head: &[u8]) -> Option<Self> {
        let file = MappedFile::open(path).ok()?;
        let length = head.len().min(file.len());
        if file[..length] != head[..length] {
            return None;
        }
        Self::parse(ImageBytes::Mapped(file), |load| load.offset)
    }

    /// Creates an image from memory, which contains the module from its beginning.
    pub(crate) fn of_memory(bytes: Box<[u8]>) -> Option<Arc<Self>> {
        let first = loads(&bytes)?.iter().map(|load| load.stated).min()?;
        Self::parse(ImageBytes::Read(bytes), |load| load.stated - first).map(Arc::new)
    }

    fn parse(bytes: ImageBytes, offset_in_bytes: impl Fn(&LoadSegment) -> u64) -> Option<Self> {
        let content = bytes.as_slice();
        let mut image = Self { loads: loads(content)?, unwind_header: None, build_id: None, soname: None, bytes };
        for load in &mut image.loads {
            load.offset = offset_in_bytes(load);
        }
        let segments = segments(image.bytes.as_slice())?.to_vec();
        let find = |kind| segments.iter().find(move |segment| segment.p_type(LittleEndian) == kind);
        image.unwind_header = find(elf::PT_GNU_EH_FRAME).map(|segment| segment.p_vaddr(LittleEndian));
        let notes = segments.iter().filter(|segment| segment.p_type(LittleEndian) == elf::PT_NOTE);
        image.build_id = notes.filter_map(|segment| image.segment(segment)).find_map(build_id_in);
        image.soname = find(elf::PT_DYNAMIC).and_then(|segment| image.soname_in(segment));
        Some(image)
    }

    /// Returns the bytes from a stated address to the end of the segment's part in the file.
    pub(crate) fn at(&self, stated: u64) -> Option<&[u8]> {
        let load = self.load_holding(stated)?;
        let skipped = stated - load.stated;
        let start = usize::try_from(load.offset.checked_add(skipped)?).ok()?;
        let length = usize::try_from(load.file_size - skipped).ok()?;
        let rest = self.bytes.as_slice().get(start..)?;
        Some(&rest[..length.min(rest.len())])
    }

    /// Returns its unwind entries, if it has any.
    pub(crate) fn unwind_table(&self) -> Option<UnwindTable<'_>> {
        let header = self.unwind_header?;
        let start = self.load_holding(header)?.stated;
        UnwindTable::new(self.at(start)?, start, header)
    }

    fn load_holding(&self, stated: u64) -> Option<&LoadSegment> {
        self.loads.iter().find(|load| stated.wrapping_sub(load.stated) < load.file_size)
    }

    /// Returns its segments.
    pub(crate) fn loads(&self) -> &[LoadSegment] {
        &self.loads
    }

    fn segment(&self, segment: &Segment) -> Option<&[u8]> {
        let length = usize::try_from(segment.p_filesz(LittleEndian)).ok()?;
        self.at(segment.p_vaddr(LittleEndian))?.get(..length)
    }

    fn soname_in(&self, dynamic: &Segment) -> Option<String> {
        let bytes = self.segment(dynamic)?;
        let whole = bytes.len() - bytes.len() % size_of::<Entry>();
        let entries = object::pod::slice_from_all_bytes::<Entry>(&bytes[..whole]).ok()?;
        let value =
            |wanted| Some(entries.iter().find(|entry| entry.d_tag(LittleEndian) == wanted)?.d_val(LittleEndian));
        let name = self.at(value(elf::DT_STRTAB)?.checked_add(value(elf::DT_SONAME)?)?)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        str::from_utf8(&name[..end]).ok().map(str::to_owned)
    }
}

/// Returns the loadable segments that a module's headers list, with their offsets in the file.
pub(crate) fn loads(bytes: &[u8]) -> Option<Vec<LoadSegment>> {
    let segments = segments(bytes)?.iter().filter(|segment| segment.p_type(LittleEndian) == elf::PT_LOAD);
    let loads = segments.map(|segment| LoadSegment {
        stated: segment.p_vaddr(LittleEndian),
        size: segment.p_memsz(LittleEndian),
        offset: segment.p_offset(LittleEndian),
        file_size: segment.p_filesz(LittleEndian),
    });
    Some(loads.collect())
}

fn segments(bytes: &[u8]) -> Option<&[Segment]> {
    let header = Header::parse(bytes).ok()?;
    header.program_headers(header.endian().ok()?, bytes).ok()
}

/// Returns the build id in a module's notes.
fn build_id_in(notes: &[u8]) -> Option<BuildId> {
    let mut notes = object::read::elf::NoteIterator::<Header>::new(LittleEndian, 4, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}
