//! Numbers of variable length, and a cursor that never reads past the end.

use super::error::BlockError;

/// Appends a number with seven bits in each byte, the lowest first; the top bit marks that more follow.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Appends many numbers at once. It writes eight bytes for each without a branch on its length, because unpredictable lengths
/// would cost more than the writes.
pub(super) fn put_all(out: &mut Vec<u8>, values: &[u64], mut map: impl FnMut(u64) -> u64) {
    let mut at = out.len();
    out.resize(at + values.len() * MAX_LEN, 0);
    for value in values {
        let value = map(*value);
        if value >> 56 != 0 {
            at += put_long(&mut out[at..at + MAX_LEN], value);
            continue;
        }
        let len = (70 - (value | 1).leading_zeros() as usize) / 7;
        let more = CONTINUED & !(u64::MAX << (8 * (len - 1)));
        out[at..at + 8].copy_from_slice(&(spread(value) | more).to_le_bytes());
        at += len;
    }
    out.truncate(at);
}

/// The maximum number of bytes of a number.
const MAX_LEN: usize = 10;
/// The top bit of each byte.
const CONTINUED: u64 = 0x8080_8080_8080_8080;

#[cold]
fn put_long(out: &mut [u8], mut value: u64) -> usize {
    let mut len = 0;
    while value >= 0x80 {
        out[len] = low_byte(value) | 0x80;
        value >>= 7;
        len += 1;
    }
    out[len] = low_byte(value);
    len + 1
}

/// Moves each group of seven bits of a number below 2^56 to a separate byte.
const fn spread(value: u64) -> u64 {
    let value = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let value = value & 0x0000_3fff_0000_3fff | (value & 0x0fff_c000_0fff_c000) << 2;
    value & 0x007f_007f_007f_007f | (value & 0x3f80_3f80_3f80_3f80) << 1
}

/// Reverses [`spread`].
const fn gather(value: u64) -> u64 {
    let value = value & 0x007f_007f_007f_007f | (value & 0x7f00_7f00_7f00_7f00) >> 1;
    let value = value & 0x0000_3fff_0000_3fff | (value & 0x3fff_0000_3fff_0000) >> 2;
    value & 0x0fff_ffff | (value & 0x0fff_ffff_0000_0000) >> 4
}

/// Returns a number with its sign in the lowest bit, so that small numbers of both signs are short.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "the cast keeps the bits")]
pub(super) const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Reverses [`zigzag`].
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "the cast keeps the bits")]
pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, zigzag(value));
}

/// Appends a length and the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[expect(clippy::cast_possible_truncation, reason = "the cast keeps the low bits")]
const fn low_byte(value: u64) -> u8 {
    value as u8
}

/// The unread rest of a payload.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the number of remaining bytes.
    pub(super) const fn len(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, BlockError> {
        let (&byte, rest) = self.rest.split_first().ok_or(BlockError::EndsEarly)?;
        self.rest = rest;
        Ok(byte)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, BlockError> {
        let byte = self.byte()?;
        if byte < 0x80 { Ok(byte.into()) } else { self.more(byte) }
    }

    #[inline]
    fn more(&mut self, first: u8) -> Result<u64, BlockError> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..=63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return if shift == 63 && byte > 1 { Err(BlockError::Contradiction) } else { Ok(value) };
            }
        }
        Err(BlockError::Contradiction)
    }

    /// Appends `count` numbers to `out`, each converted by `map`.
    pub(super) fn varints(
        &mut self,
        count: usize,
        out: &mut Vec<u64>,
        mut map: impl FnMut(u64) -> u64,
    ) -> Result<(), BlockError> {
        // A local copy, so that it can stay in registers.
        let mut rest = *self;
        for _ in 0..count {
            let value = match rest.rest.first_chunk() {
                Some(next) => rest.varint_of(u64::from_le_bytes(*next))?,
                None => rest.varint()?,
            };
            out.push(map(value));
        }
        *self = rest;
        Ok(())
    }

    /// Reads the next number, given the next eight bytes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a function call for each value would cost as much as the value")]
    fn varint_of(&mut self, next: u64) -> Result<u64, BlockError> {
        let ends = !next & CONTINUED;
        if ends == 0 {
            return self.varint();
        }
        let bits = ends.trailing_zeros() + 1;
        self.rest = &self.rest[bits as usize / 8..];
        Ok(gather(next & u64::MAX >> (64 - bits) & !CONTINUED))
    }

    pub(super) fn signed(&mut self) -> Result<i64, BlockError> {
        self.varint().map(unzigzag)
    }

    /// Reads a number that must fit into 32 bits.
    pub(super) fn small(&mut self) -> Result<u32, BlockError> {
        u32::try_from(self.varint()?).map_err(|_| BlockError::Contradiction)
    }

    /// Reads a count of items of at least `least` bytes each, which must all remain.
    pub(super) fn count(&mut self, least: usize) -> Result<usize, BlockError> {
        let count = usize::try_from(self.varint()?).map_err(|_| BlockError::TooMuch)?;
        if count > self.len() / least { Err(BlockError::EndsEarly) } else { Ok(count) }
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], BlockError> {
        let (consumed, rest) = self.rest.split_at_checked(len).ok_or(BlockError::EndsEarly)?;
        self.rest = rest;
        Ok(consumed)
    }

    /// Reads a length and as many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], BlockError> {
        let len = self.count(1)?;
        self.take(len)
    }

    /// Reads the same as text. Invalid UTF-8 is replaced.
    pub(super) fn text(&mut self) -> Result<String, BlockError> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_round_trip() {
        for bits in 0..64 {
            for value in [1 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                let mut bytes = Vec::new();
                put(&mut bytes, value);
                let mut cursor = Cursor::new(&bytes);
                assert_eq!((cursor.varint(), cursor.is_empty()), (Ok(value), true));
                assert_eq!(zigzag(unzigzag(value)), value);
            }
        }
        assert_eq!([0, -1, 1, -2, i64::MIN].map(zigzag), [0, 1, 2, 3, u64::MAX]);
    }

    #[test]
    fn many_numbers_are_written_as_single_ones() {
        let values: Vec<u64> =
            (0..64).flat_map(|bits| [1 << bits, (1 << bits) - 1, u64::MAX >> bits, 0x55, 0x1234_5678]).collect();
        let (mut single, mut many) = (vec![7], vec![7]);
        for value in &values {
            put(&mut single, *value);
        }
        put_all(&mut many, &values, |value| value);
        assert_eq!(single, many);
        let mut cursor = Cursor::new(&many[1..]);
        let mut read = Vec::new();
        cursor.varints(values.len(), &mut read, |value| value).unwrap();
        assert_eq!((read, cursor.is_empty()), (values, true));
        assert_eq!(Cursor::new(&[0xff; 9]).varints(1, &mut Vec::new(), |value| value), Err(BlockError::EndsEarly));
    }

    #[test]
    fn a_number_without_end_or_out_of_range_is_rejected() {
        assert_eq!(Cursor::new(&[0x80; 9]).varint(), Err(BlockError::EndsEarly));
        assert_eq!(Cursor::new(&[0x80; 12]).varint(), Err(BlockError::Contradiction));
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint(),
            Err(BlockError::Contradiction)
        );
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x10]).small(), Err(BlockError::Contradiction));
    }

    #[test]
    fn a_count_needs_its_bytes() {
        assert_eq!(Cursor::new(&[3, 0, 0, 0]).count(1), Ok(3));
        assert_eq!(Cursor::new(&[2, 0, 0, 0]).count(2), Err(BlockError::EndsEarly));
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).count(1),
            Err(BlockError::EndsEarly)
        );
        assert_eq!(Cursor::new(&[2, b'a']).bytes(), Err(BlockError::EndsEarly));
    }
}
