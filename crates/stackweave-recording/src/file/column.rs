//! Columns: all values of one field of one kind in a block, in a compact coding.

use std::mem;

use stackweave_core::FieldType;

use super::error::BlockError;
use super::varint::{Cursor, put, put_all, put_bytes, unzigzag, zigzag};

/// The coding of a column's values. Each column states its own, so a reader does not depend on the meaning of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Coding {
    /// One number: all values are equal.
    Constant = 0,
    /// Unsigned numbers.
    Varint = 1,
    /// Signed numbers.
    Zigzag = 2,
    /// The differences to the previous value, without the low bits that are 0 in all values.
    Delta = 3,
    /// The bits that differ from the previous value, with the bytes reversed.
    Xor = 4,
    /// Eight bytes each.
    Raw = 5,
}

impl Coding {
    const ALL: [Self; 6] = [Self::Constant, Self::Varint, Self::Zigzag, Self::Delta, Self::Xor, Self::Raw];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|coding| *coding as u8 == number)
    }

    /// Returns the coding for the values of such a field.
    pub(super) const fn for_field(of: FieldType) -> Self {
        match of {
            FieldType::Stack
            | FieldType::Frame
            | FieldType::Unsigned
            | FieldType::Ticks
            | FieldType::Bytes
            | FieldType::Call => Self::Varint,
            FieldType::Signed => Self::Zigzag,
            FieldType::Address => Self::Delta,
            FieldType::Float => Self::Xor,
        }
    }
}

/// Appends a column with these values, in this coding or in a shorter one.
pub(super) fn write(values: &[u64], coding: Coding, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
    scratch.clear();
    let is_constant = values.first().is_some_and(|first| values.len() > 1 && values.iter().all(|value| value == first));
    let coding = if is_constant {
        put(scratch, values[0]);
        Coding::Constant
    } else {
        put_values(values, coding, scratch)
    };
    out.push(coding as u8);
    put_bytes(out, scratch);
}

/// Appends a column that uses at least one byte for each value, so that a few bytes can't claim a large number of values.
pub(super) fn write_each(values: &[u64], coding: Coding, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
    scratch.clear();
    let coding = put_values(values, coding, scratch);
    out.push(coding as u8);
    put_bytes(out, scratch);
}

fn put_values(values: &[u64], coding: Coding, out: &mut Vec<u8>) -> Coding {
    let mut before = 0;
    let mut step = |value: u64| value.wrapping_sub(mem::replace(&mut before, value));
    match coding {
        Coding::Varint => put_all(out, values, |value| value),
        Coding::Zigzag => put_all(out, values, |value| zigzag(value.cast_signed())),
        Coding::Delta => {
            let shift = common_zeros(values);
            out.push(shift);
            put_all(out, values, |value| zigzag(step(value >> shift).cast_signed()));
        }
        Coding::Xor => put_all(out, values, |value| (value ^ mem::replace(&mut before, value)).swap_bytes()),
        Coding::Constant | Coding::Raw => {}
    }
    if !matches!(coding, Coding::Constant | Coding::Raw) && out.len() <= values.len() * 8 {
        return coding;
    }
    out.clear();
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
    Coding::Raw
}

/// Returns the number of low bits that are 0 in all values, at most 63.
#[expect(clippy::cast_possible_truncation, reason = "at most 63")]
fn common_zeros(values: &[u64]) -> u8 {
    values.iter().fold(1 << 63, |all, value| all | value).trailing_zeros() as u8
}

/// Reads a column of `count` values from `from` and appends them to `out`. The caller has checked that they fit.
pub(super) fn read(from: &mut Cursor<'_>, count: usize, out: &mut Vec<u64>) -> Result<(), BlockError> {
    let coding = Coding::from_number(from.byte()?).ok_or(BlockError::Contradiction)?;
    let mut rest = Cursor::new(from.bytes()?);
    let mut before = 0_u64;
    match coding {
        Coding::Constant => {
            let value = rest.varint()?;
            out.resize(out.len() + count, value);
        }
        Coding::Varint => rest.varints(count, out, |value| value)?,
        Coding::Zigzag => rest.varints(count, out, |value| unzigzag(value).cast_unsigned())?,
        Coding::Delta => {
            let shift = rest.byte()? & 63;
            rest.varints(count, out, |value| {
                before = before.wrapping_add(unzigzag(value).cast_unsigned());
                before << shift
            })?;
        }
        Coding::Xor => rest.varints(count, out, |value| {
            before ^= value.swap_bytes();
            before
        })?,
        Coding::Raw => {
            let bytes = count.checked_mul(8).ok_or(BlockError::TooMuch)?;
            let (words, _) = rest.take(bytes)?.as_chunks();
            out.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(BlockError::Contradiction) }
}

/// Reads a column that [`write_each`] wrote, with at least one byte for each value.
pub(super) fn read_each(from: &mut Cursor<'_>, count: usize, out: &mut Vec<u64>) -> Result<(), BlockError> {
    let mut column = *from;
    if column.byte()? == Coding::Constant as u8 {
        return Err(BlockError::Contradiction);
    }
    if column.bytes()?.len() < count {
        return Err(BlockError::EndsEarly);
    }
    read(from, count, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(values: &[u64], coding: Coding) -> (Vec<u64>, usize) {
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        write(values, coding, &mut out, &mut scratch);
        let mut rest = Cursor::new(&out);
        let mut found = Vec::new();
        read(&mut rest, values.len(), &mut found).unwrap();
        assert!(rest.is_empty());
        (found, out.len())
    }

    #[test]
    fn values_round_trip_in_every_coding() {
        let lists: [&[u64]; 6] = [
            &[],
            &[7],
            &[7, 7, 7],
            &[0, u64::MAX, 1, u64::MAX - 1, 1 << 63],
            &[0x7f00_0000_1000, 0x7f00_0000_1040, 0x7f00_0000_0fc0],
            &[1.5_f64.to_bits(), 2.5_f64.to_bits(), f64::NAN.to_bits(), (-0.0_f64).to_bits()],
        ];
        for coding in Coding::ALL {
            for list in lists {
                assert_eq!(there_and_back(list, coding).0, list, "{coding:?}");
            }
        }
    }

    #[test]
    fn constant_values_are_written_once_and_noise_as_eight_bytes() {
        assert_eq!(there_and_back(&[300; 1000], Coding::Varint).1, 4);
        let noise: Vec<u64> = (1..1000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63).collect();
        assert_eq!(there_and_back(&noise, Coding::Varint).1, 3 + 8 * noise.len());
    }

    #[test]
    fn low_bits_that_are_0_in_all_values_are_not_written() {
        let aligned: Vec<u64> = (0..100).map(|n| 0x7f00_0000_0000 + n % 3 * 0x400).collect();
        assert_eq!(there_and_back(&aligned, Coding::Delta), (aligned.clone(), 3 + 6 + 99));
        assert_eq!(there_and_back(&[0, 1 << 63, 0], Coding::Delta).0, [0, 1 << 63, 0]);
    }

    #[test]
    fn a_column_with_an_unknown_coding_or_wrong_length_is_rejected() {
        let found = |bytes: &[u8], count| read(&mut Cursor::new(bytes), count, &mut Vec::new());
        assert_eq!(found(&[9, 0], 0), Err(BlockError::Contradiction));
        assert_eq!(found(&[1, 5, 0], 1), Err(BlockError::EndsEarly));
        assert_eq!(found(&[5, 2, 0, 0], 1), Err(BlockError::EndsEarly));
        assert_eq!(found(&[5, 0], usize::MAX), Err(BlockError::TooMuch));
        assert_eq!(found(&[1, 2, 0, 0], 1), Err(BlockError::Contradiction));
        let each = |bytes: &[u8], count| read_each(&mut Cursor::new(bytes), count, &mut Vec::new());
        assert_eq!(each(&[0, 1, 5], 1 << 40), Err(BlockError::Contradiction));
        assert_eq!(each(&[1, 1, 5], 2), Err(BlockError::EndsEarly));
        assert_eq!(each(&[1, 1, 5], 1), Ok(()));
    }
}
