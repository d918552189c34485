//! `.gnu_debugdata`: a symbol table in a compressed ELF file inside the file.

use std::io::Read as _;

use lzma_rust2::XzReader;
use object::{Object as _, ObjectSection as _};

use crate::byte_arena::FileBytes;
use crate::elf::{Elf, ElfImage};

/// A limit that exceeds every symbol table.
const LARGEST: u64 = 1 << 30;

/// Returns the ELF file inside `elf`.
pub(crate) fn extract(elf: &Elf<'_>) -> Option<ElfImage> {
    let compressed = elf.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut bytes = Vec::new();
    XzReader::new(compressed, false).take(LARGEST).read_to_end(&mut bytes).ok()?;
    ElfImage::parse(FileBytes::Owned(bytes.into()))
}
