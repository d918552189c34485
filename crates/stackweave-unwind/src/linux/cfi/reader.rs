//! Checked reads from a byte section with a known address.

use super::{Malformed, Result};

/// Bytes of this process's memory, and their address. Offsets into `bytes` and addresses differ only by `address`,
/// so that pc-relative pointers can be followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableSection<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) address: u64,
}

impl<'a> TableSection<'a> {
    /// Returns the offset of `address` in this section.
    pub(crate) fn offset_of(&self, address: u64) -> Result<usize> {
        let offset = usize::try_from(address.wrapping_sub(self.address)).map_err(|_| Malformed)?;
        if offset < self.bytes.len() { Ok(offset) } else { Err(Malformed) }
    }

    /// Returns a reader of `start..end`.
    pub(crate) fn reader(&self, start: usize, end: usize) -> Result<ByteReader<'a>> {
        let bytes = self.bytes.get(..end).ok_or(Malformed)?;
        if start > end {
            return Err(Malformed);
        }
        Ok(ByteReader { bytes, position: start })
    }
}

/// A cursor over a section's bytes. Positions are offsets into the section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl ByteReader<'_> {
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.position
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.position >= self.bytes.len()
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let rest = self.bytes.get(self.position..).ok_or(Malformed)?;
        let value = *rest.first_chunk::<N>().ok_or(Malformed)?;
        self.position += N;
        Ok(value)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8> {
        let value = *self.bytes.get(self.position).ok_or(Malformed)?;
        self.position += 1;
        Ok(value)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    #[inline]
    pub(super) fn uleb(&mut self) -> Result<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..70).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    pub(super) fn sleb(&mut self) -> Result<i64> {
        let mut value = 0i64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            value |= i64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                if byte & 0x40 != 0 && shift + 7 < 64 {
                    value |= -1 << (shift + 7);
                }
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    #[inline]
    pub(super) fn skip(&mut self, count: u64) -> Result<()> {
        let count = usize::try_from(count).map_err(|_| Malformed)?;
        let position = self.position.checked_add(count).ok_or(Malformed)?;
        if position > self.bytes.len() {
            return Err(Malformed);
        }
        self.position = position;
        Ok(())
    }

    /// Skips to the byte after the next null.
    pub(super) fn skip_string(&mut self) -> Result<()> {
        while self.u8()? != 0 {}
        Ok(())
    }

    /// Returns a reader of the next `count` bytes, and skips them.
    pub(super) fn take(&mut self, count: u64) -> Result<Self> {
        let start = self.position;
        self.skip(count)?;
        Ok(Self { bytes: self.bytes.get(..self.position).ok_or(Malformed)?, position: start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> ByteReader<'_> {
        ByteReader { bytes, position: 0 }
    }

    #[test]
    fn leb128_agrees_with_the_standard() {
        for (bytes, value) in [(&[2][..], 2), (&[0x80, 1], 128), (&[0xe5, 0x8e, 0x26], 624_485)] {
            assert_eq!(reader(bytes).uleb(), Ok(value));
        }
        for (bytes, value) in [(&[2][..], 2), (&[0x7e], -2), (&[0x80, 0x7f], -128), (&[0x78], -8), (&[0xff, 0], 127)] {
            assert_eq!(reader(bytes).sleb(), Ok(value));
        }
    }

    #[test]
    fn endless_leb128_is_malformed() {
        assert_eq!(reader(&[0xff; 64]).uleb(), Err(Malformed));
        assert_eq!(reader(&[0xff; 64]).sleb(), Err(Malformed));
    }

    #[test]
    fn reads_past_the_end_are_malformed() {
        assert_eq!(reader(&[1, 2, 3]).u32(), Err(Malformed));
        assert_eq!(reader(&[]).u8(), Err(Malformed));
        assert_eq!(reader(&[1, 2, 3]).skip(4), Err(Malformed));
        assert_eq!(reader(&[1]).skip_string(), Err(Malformed));
    }
}
