//! One module's bytes: of its file, or of the memory that it was loaded to.

use std::path::Path;
use std::sync::Arc;

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use stackweave_core::BuildId;
use stackweave_files::MappedFile;
use stackweave_unwind::stepping::UnwindTable;

/// What a walk, and who names its frames, must know of a module.
#[derive(Debug)]
pub(crate) struct Image {
    bytes: Bytes,
    loads: Vec<Load>,
    /// The stated address of `.eh_frame_hdr`.
    unwind_header: Option<u64>,
    pub(crate) build_id: Option<BuildId>,
    /// What others that need the library call it.
    pub(crate) soname: Option<String>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(MappedFile),
    Read(Box<[u8]>),
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(file) => file,
            Self::Read(bytes) => bytes,
        }
    }
}

/// A loadable segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Where it begins, as the file states it.
    pub(crate) stated: u64,
    /// How long it is in memory.
    pub(crate) size: u64,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// How much of it is in the file.
    file_size: u64,
}

/// The first page of a module: headers and, nearly always, build id.
pub(crate) const HEAD: usize = 4096;

type Header = FileHeader64<LittleEndian>;
type Entry = elf::Dyn64<LittleEndian>;
type Segment = ProgramHeader64<LittleEndian>;

impl Image {
    /// The file at `path`, if it begins as the module in memory does: with `head`.
    pub(crate) fn of_file(path: &Path, head: &[u8]) -> Option<Self> {
        let file = MappedFile::open(path).ok()?;
        let length = head.len().min(file.len());
        if file[..length] != head[..length] {
            return None;
        }
        Self::parse(Bytes::Mapped(file), |load| load.offset)
    }

    /// What was read from memory, as it lies there: the module begins with it.
    pub(crate) fn of_memory(bytes: Box<[u8]>) -> Option<Arc<Self>> {
        let first = loads(&bytes)?.iter().map(|load| load.stated).min()?;
        Self::parse(Bytes::Read(bytes), |load| load.stated - first).map(Arc::new)
    }

    fn parse(bytes: Bytes, offset_in_bytes: impl Fn(&Load) -> u64) -> Option<Self> {
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

    /// The bytes from a stated address on, to the end of what the file has of its segment.
    pub(crate) fn at(&self, stated: u64) -> Option<&[u8]> {
        let load = self.load_holding(stated)?;
        let skipped = stated - load.stated;
        let start = usize::try_from(load.offset.checked_add(skipped)?).ok()?;
        let length = usize::try_from(load.file_size - skipped).ok()?;
        let rest = self.bytes.as_slice().get(start..)?;
        Some(&rest[..length.min(rest.len())])
    }

    /// Its unwind entries, if it has any.
    pub(crate) fn unwind_table(&self) -> Option<UnwindTable<'_>> {
        let header = self.unwind_header?;
        let start = self.load_holding(header)?.stated;
        UnwindTable::new(self.at(start)?, start, header)
    }

    fn load_holding(&self, stated: u64) -> Option<&Load> {
        self.loads.iter().find(|load| stated.wrapping_sub(load.stated) < load.file_size)
    }

    /// Its segments.
    pub(crate) fn loads(&self) -> &[Load] {
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

/// The loadable segments that a module's headers list, with their offsets in the file.
pub(crate) fn loads(bytes: &[u8]) -> Option<Vec<Load>> {
    let segments = segments(bytes)?.iter().filter(|segment| segment.p_type(LittleEndian) == elf::PT_LOAD);
    let loads = segments.map(|segment| Load {
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

/// The build id in a module's notes.
fn build_id_in(notes: &[u8]) -> Option<BuildId> {
    let mut notes = object::read::elf::NoteIterator::<Header>::new(LittleEndian, 4, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}
