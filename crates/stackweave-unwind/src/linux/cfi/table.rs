//! The unwind entries of a module: found by the sorted table of `.eh_frame_hdr`, or by a scan.

use super::entry::{Cie, EhFrameEntry, Fde};
use super::pointer::{self, OMIT};
use super::reader::TableSection;
use super::{Malformed, Result};

/// A module's unwind entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    /// The bytes that contain `.eh_frame_hdr` and `.eh_frame`.
    pub(crate) section: TableSection<'a>,
    /// The base of the addresses in the sorted table.
    base: u64,
    /// The offset of the sorted table in the section, and its number of entries; 0: there is none.
    sorted: (usize, usize),
    /// The offset of `.eh_frame`.
    pub(super) entries: usize,
}

/// The encoding of the sorted table that every linker writes: pairs of 32-bit offsets from the header.
const SORTED_ENCODING: u8 = 0x3b;
const PAIR: usize = 8;

impl<'a> Table<'a> {
    /// Reads the `.eh_frame_hdr` at `header`.
    pub(crate) fn from_header(section: TableSection<'a>, header: u64) -> Result<Self> {
        let mut reader = section.reader(section.offset_of(header)?, section.bytes.len())?;
        if reader.u8()? != 1 {
            return Err(Malformed);
        }
        let [entries_encoding, count_encoding, table_encoding] = [reader.u8()?, reader.u8()?, reader.u8()?];
        let entries = pointer::read(&section, &mut reader, entries_encoding, header)?;
        let mut table = Self { section, base: header, sorted: (0, 0), entries: section.offset_of(entries)? };
        if count_encoding != OMIT && table_encoding == SORTED_ENCODING {
            let count = pointer::read(&section, &mut reader, count_encoding, header)?;
            let count = usize::try_from(count).map_err(|_| Malformed)?;
            let size = count.checked_mul(PAIR).ok_or(Malformed)?;
            reader.skip(size as u64)?;
            table.sorted = (reader.position() - size, count);
        }
        Ok(table)
    }

    /// Creates a table from a bare `.eh_frame` that begins at the section's start.
    pub(crate) fn from_entries(section: TableSection<'a>) -> Self {
        Self { section, base: 0, sorted: (0, 0), entries: 0 }
    }

    /// Returns the entry whose function holds `pc`.
    pub(crate) fn find(&self, pc: u64, cie: &mut Cie) -> Result<Option<Fde<'a>>> {
        if self.sorted.1 == 0 {
            return self.scan(pc, cie);
        }
        let Some(offset) = self.search(pc)? else { return Ok(None) };
        let fde = Fde::parse(&self.section, offset, cie)?.ok_or(Malformed)?;
        Ok(fde.contains(pc).then_some(fde))
    }

    /// Returns the end of the entry that covers `pc`, if one does; 0 if the entry cannot be read.
    pub(crate) fn end_of_entry(&self, pc: u64, cie: &mut Cie) -> Option<u64> {
        self.find(pc, cie).map_or(Some(0), |fde| fde.map(|fde| fde.start.wrapping_add(fde.length)))
    }

    /// Returns the offset of the last entry in the sorted table that begins at or before `pc`.
    fn search(&self, pc: u64) -> Result<Option<usize>> {
        let Ok(key) = i32::try_from(pc.wrapping_sub(self.base).cast_signed()) else { return Ok(None) };
        let (start, count) = self.sorted;
        let bytes = self.section.bytes.get(start..start + count * PAIR).ok_or(Malformed)?;
        let (pairs, _) = bytes.as_chunks::<PAIR>();
        let half =
            |pair: &[u8; PAIR], at: usize| i32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
        let (mut low, mut len) = (0, count);
        while len > 1 {
            let middle = len / 2;
            low += if half(&pairs[low + middle], 0) <= key { middle } else { 0 };
            len -= middle;
        }
        if half(&pairs[low], 0) > key {
            return Ok(None);
        }
        let entry = self.base.wrapping_add(i64::from(half(&pairs[low], 4)).cast_unsigned());
        self.section.offset_of(entry).map(Some)
    }

    /// Reads all entries in order. This is slow, and only for tables that no linker sorted.
    fn scan(&self, pc: u64, cie: &mut Cie) -> Result<Option<Fde<'a>>> {
        let mut offset = self.entries;
        while offset < self.section.bytes.len() {
            let Some(entry) = EhFrameEntry::parse(&self.section, offset)? else { return Ok(None) };
            if entry.id != 0 {
                let fde = Fde::from_entry(&self.section, &entry, offset, cie)?;
                if fde.contains(pc) {
                    return Ok(Some(fde));
                }
            }
            offset = entry.end;
        }
        Ok(None)
    }
}
