//! Encoded pointers (`DW_EH_PE_*`).

use super::reader::{ByteReader, TableSection};
use super::{Malformed, Result};

/// The pointer is omitted.
pub(super) const OMIT: u8 = 0xff;

const FORMAT: u8 = 0x0f;
const RELATIVE_TO: u8 = 0x70;

/// Reads a pointer. Data-relative pointers are relative to `data_base`.
pub(super) fn read(
    section: &TableSection<'_>,
    reader: &mut ByteReader<'_>,
    encoding: u8,
    data_base: u64,
) -> Result<u64> {
    let base = match encoding & RELATIVE_TO {
        0x00 => 0,
        0x10 => section.address.wrapping_add(reader.position() as u64),
        0x30 => data_base,
        _ => return Err(Malformed),
    };
    let value = read_value(reader, encoding)?;
    // Indirect pointers: no compiler sets this bit for the pointers that this reader follows.
    if encoding & 0x80 != 0 {
        return Err(Malformed);
    }
    Ok(base.wrapping_add(value))
}

/// Reads a number in the pointer's format, such as the length of a range.
pub(super) fn read_value(reader: &mut ByteReader<'_>, encoding: u8) -> Result<u64> {
    Ok(match encoding & FORMAT {
        0x00 | 0x04 | 0x0c => reader.u64()?,
        0x01 => reader.uleb()?,
        0x02 => u64::from(reader.u16()?),
        0x03 => u64::from(reader.u32()?),
        0x09 => reader.sleb()?.cast_unsigned(),
        0x0a => i64::from(reader.u16()?.cast_signed()).cast_unsigned(),
        0x0b => i64::from(reader.u32()?.cast_signed()).cast_unsigned(),
        _ => return Err(Malformed),
    })
}
