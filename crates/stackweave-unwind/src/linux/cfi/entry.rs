//! The two kinds of entries in `.eh_frame`: CIE (shared by many functions) and FDE (one function).

use super::pointer::{self, OMIT};
use super::reader::{ByteReader, TableSection};
use super::row::UnwindRow;
use super::{Malformed, Result};

/// The contents of a CIE that its functions' entries need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cie {
    /// The address of the CIE; 0: none was read yet.
    address: u64,
    pub(super) code_alignment: u64,
    pub(super) data_alignment: i64,
    pub(super) pointer_encoding: u8,
    has_augmentation_data: bool,
    /// Whether the function is a signal trampoline, which a signal inserted: its caller did not call it.
    pub(super) is_signal_frame: bool,
    /// The row that the CIE's own instructions set up.
    pub(super) initial: UnwindRow,
}

impl Cie {
    /// No CIE: it matches no entry.
    pub(crate) const NONE: Self = Self {
        address: 0,
        code_alignment: 1,
        data_alignment: 1,
        pointer_encoding: 0,
        has_augmentation_data: false,
        is_signal_frame: false,
        initial: UnwindRow::UNSET,
    };

    /// Loads the CIE at `offset` into `self`, unless it is already loaded.
    fn load(&mut self, section: &TableSection<'_>, offset: usize) -> Result<()> {
        let address = section.address.wrapping_add(offset as u64);
        if self.address != address {
            *self = Self::NONE;
            *self = Self::parse(section, offset, address)?;
        }
        Ok(())
    }

    fn parse(section: &TableSection<'_>, offset: usize, address: u64) -> Result<Self> {
        let mut entry = EhFrameEntry::parse(section, offset)?.ok_or(Malformed)?;
        let mut cie = Self { address, ..Self::NONE };
        if entry.id != 0 {
            return Err(Malformed);
        }
        let reader = &mut entry.body;
        let version = reader.u8()?;
        if !matches!(version, 1 | 3 | 4) {
            return Err(Malformed);
        }
        let mut augmentation = *reader;
        reader.skip_string()?;
        if version == 4 {
            reader.skip(2)?;
        }
        cie.code_alignment = reader.uleb()?;
        cie.data_alignment = reader.sleb()?;
        let return_register = if version == 1 { u64::from(reader.u8()?) } else { reader.uleb()? };
        if return_register != crate::platform::arch::dwarf::RETURN_ADDRESS {
            return Err(Malformed);
        }
        cie.read_augmentation(&mut augmentation, reader)?;
        let mut initial = UnwindRow::UNSET;
        initial.run(section, reader, &cie, 0..=u64::MAX)?;
        cie.initial = initial;
        Ok(cie)
    }

    fn read_augmentation(&mut self, names: &mut ByteReader<'_>, reader: &mut ByteReader<'_>) -> Result<()> {
        let mut data = *reader;
        loop {
            match names.u8()? {
                0 => return Ok(()),
                b'z' => {
                    self.has_augmentation_data = true;
                    let length = reader.uleb()?;
                    data = reader.take(length)?;
                }
                b'R' => self.pointer_encoding = data.u8()?,
                b'L' => {
                    data.u8()?;
                }
                b'P' => {
                    let encoding = data.u8()?;
                    if encoding != OMIT {
                        pointer::read_value(&mut data, encoding)?;
                    }
                }
                b'S' => self.is_signal_frame = true,
                b'B' | b'G' => {}
                _ if self.has_augmentation_data => return Ok(()),
                _ => return Err(Malformed),
            }
        }
    }
}

/// The entry of one function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fde<'a> {
    /// The offset of the entry in the section.
    pub(crate) offset: usize,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(super) instructions: ByteReader<'a>,
}

impl<'a> Fde<'a> {
    /// Reads the entry at `offset`, and its CIE into `cie`; `None` for a CIE or the terminator.
    pub(super) fn parse(section: &TableSection<'a>, offset: usize, cie: &mut Cie) -> Result<Option<Self>> {
        match EhFrameEntry::parse(section, offset)? {
            Some(entry) if entry.id != 0 => Self::from_entry(section, &entry, offset, cie).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn from_entry(
        section: &TableSection<'a>,
        entry: &EhFrameEntry<'a>,
        offset: usize,
        cie: &mut Cie,
    ) -> Result<Self> {
        let distance = usize::try_from(entry.id).map_err(|_| Malformed)?;
        cie.load(section, entry.id_position.checked_sub(distance).ok_or(Malformed)?)?;
        let mut reader = entry.body;
        let start = pointer::read(section, &mut reader, cie.pointer_encoding, 0)?;
        let length = pointer::read_value(&mut reader, cie.pointer_encoding)?;
        if cie.has_augmentation_data {
            let length = reader.uleb()?;
            reader.skip(length)?;
        }
        Ok(Self { offset, start, length, instructions: reader })
    }

    pub(crate) fn contains(&self, pc: u64) -> bool {
        pc.wrapping_sub(self.start) < self.length
    }
}

/// Any entry, of which the length and id are parsed.
pub(super) struct EhFrameEntry<'a> {
    /// 0 for a CIE; for an FDE the distance back to its CIE.
    pub(super) id: u64,
    id_position: usize,
    body: ByteReader<'a>,
    /// The offset of the next entry.
    pub(super) end: usize,
}

impl<'a> EhFrameEntry<'a> {
    /// Parses an entry; `None` at the terminator.
    pub(super) fn parse(section: &TableSection<'a>, offset: usize) -> Result<Option<Self>> {
        let mut reader = section.reader(offset, section.bytes.len())?;
        let mut length = u64::from(reader.u32()?);
        let is_64_bit = length == 0xffff_ffff;
        if is_64_bit {
            length = reader.u64()?;
        }
        if length == 0 {
            return Ok(None);
        }
        let mut body = reader.take(length)?;
        let id_position = body.position();
        let id = if is_64_bit { body.u64()? } else { u64::from(body.u32()?) };
        Ok(Some(Self { id, id_position, body, end: reader.position() }))
    }
}
