//! The parts of an ELF file that this crate reads.

use std::path::Path;
use std::sync::Arc;

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _};
use self_cell::self_cell;
use stackweave_core::BuildId;
use stackweave_files::MappedFile;

use crate::byte_arena::{Arena, FileBytes};

pub(crate) type Elf<'a> = ElfFile64<'a, Endianness>;

/// Parses a file.
pub(crate) fn parse(bytes: &[u8]) -> Option<Elf<'_>> {
    Elf::parse(bytes).ok()
}

/// A parsed file.
#[derive(Debug)]
pub(crate) struct ElfImage(ParsedElf);

self_cell!(
    struct ParsedElf {
        owner: FileBytes,

        #[not_covariant]
        dependent: Elf,
    }

    impl {Debug}
);

impl ElfImage {
    /// Parses `bytes`; `None` if they are not an ELF file for this kind of machine.
    pub(crate) fn parse(bytes: FileBytes) -> Option<Self> {
        ParsedElf::try_new(bytes, |bytes| parse(bytes).ok_or(())).ok().map(Self)
    }

    /// Copies and parses the debug file at `path`, which other programs may change.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = MappedFile::open_copied(path).ok()?;
        Self::parse(FileBytes::Mapped(Arc::new(file)))
    }

    /// Calls `look` with the parsed file.
    pub(crate) fn with<R>(&self, look: impl for<'a> FnOnce(&'a Elf<'a>) -> R) -> R {
        self.0.with_dependent(|_, elf| look(elf))
    }

    /// Returns the file's bytes.
    pub(crate) fn bytes(&self) -> &FileBytes {
        self.0.borrow_owner()
    }

    /// Returns its build id.
    pub(crate) fn build_id(&self) -> Option<BuildId> {
        self.with(|elf| BuildId::new(elf.build_id().ok()??))
    }
}

/// Returns whether both stated addresses are in one section.
pub(crate) fn are_in_one_section(elf: &Elf<'_>, first: u64, second: u64) -> bool {
    let holds = |section: &object::read::elf::ElfSection64<'_, '_, Endianness>, address: u64| {
        address.wrapping_sub(section.address()) < section.size()
    };
    elf.sections().any(|section| section.address() != 0 && holds(&section, first) && holds(&section, second))
}

/// Returns the maximum decompressed size of a section in a file of this size.
fn largest_decompressed(compressed: u64) -> u64 {
    const RATIO: u64 = 1100;
    const LIMIT: u64 = 4 << 30;
    compressed.saturating_mul(RATIO).saturating_add(4096).min(LIMIT)
}

/// Returns a section's bytes, decompressed to `arena` if necessary; empty if the section does not exist.
pub(crate) fn section<'a>(elf: &Elf<'a>, name: &str, arena: &'a Arena<FileBytes>) -> &'a [u8] {
    let Some(section) = elf.section_by_name(name) else { return &[] };
    let Ok(data) = section.compressed_data() else { return &[] };
    if data.format == object::CompressionFormat::None {
        return data.data;
    }
    if data.uncompressed_size > largest_decompressed(data.data.len() as u64) {
        return &[];
    }
    match data.decompress() {
        Ok(decompressed) => arena.push(FileBytes::Owned(decompressed.into())),
        Err(_) => &[],
    }
}
