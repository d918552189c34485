//! Columns: all values of one field of one kind in a block, in the coding that makes them small.

use stackweave_core::FieldType;

use super::error::BlockError;
use super::varint::{Cursor, put, put_bytes, unzigzag, zigzag};

/// How the values of a column are written. Each column says its own, so a reader need not know what its field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Coding {
    /// One number: they are all the same.
    Constant = 0,
    /// Numbers as they are.
    Varint = 1,
    /// Numbers with a sign.
    Zigzag = 2,
    /// By how much each is greater than the one before; the first is compared with 0.
    Delta = 3,
    /// The bits that differ from the one before, those of the highest byte first.
    Xor = 4,
    /// Eight bytes each.
    Raw = 5,
}

impl Coding {
    const ALL: [Self; 6] = [Self::Constant, Self::Varint, Self::Zigzag, Self::Delta, Self::Xor, Self::Raw];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|coding| *coding as u8 == number)
    }

    /// What suits the values of such a field.
    pub(super) const fn for_field(of: FieldType) -> Self {
        match of {
            FieldType::Stack | FieldType::Frame | FieldType::Unsigned | FieldType::Ticks | FieldType::Bytes => {
                Self::Varint
            }
            FieldType::Signed => Self::Zigzag,
            FieldType::Address => Self::Delta,
            FieldType::Float => Self::Xor,
        }
    }
}

/// Appends a column with these values, by this coding or by one that is shorter.
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

/// The same, for values that take a byte each or more, so that nobody can claim a great number of them for nothing.
pub(super) fn write_each(values: &[u64], coding: Coding, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
    scratch.clear();
    let coding = put_values(values, coding, scratch);
    out.push(coding as u8);
    put_bytes(out, scratch);
}

fn put_values(values: &[u64], coding: Coding, out: &mut Vec<u8>) -> Coding {
    out.reserve(values.len() * 2);
    let mut before = 0;
    match coding {
        Coding::Varint => values.iter().for_each(|value| put(out, *value)),
        Coding::Zigzag => values.iter().for_each(|value| put(out, zigzag(value.cast_signed()))),
        Coding::Delta => values.iter().for_each(|value| {
            put(out, zigzag(value.wrapping_sub(before).cast_signed()));
            before = *value;
        }),
        Coding::Xor => values.iter().for_each(|value| {
            put(out, (value ^ before).swap_bytes());
            before = *value;
        }),
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

/// A column that is read value by value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column<'a> {
    coding: Coding,
    rest: Cursor<'a>,
    before: u64,
}

impl<'a> Column<'a> {
    /// Takes a whole column out of `from`.
    pub(super) fn take(from: &mut Cursor<'a>) -> Result<Self, BlockError> {
        let coding = Coding::from_number(from.byte()?).ok_or(BlockError::Contradiction)?;
        let mut rest = Cursor::new(from.bytes()?);
        let before = if coding == Coding::Constant { rest.varint()? } else { 0 };
        Ok(Self { coding, rest, before })
    }

    /// Whether each value takes a byte or more, and there are enough for this many.
    pub(super) fn holds(&self, count: usize) -> bool {
        self.coding != Coding::Constant && count <= self.rest.len()
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<u64, BlockError> {
        match self.coding {
            Coding::Varint => self.rest.varint(),
            Coding::Delta => {
                let step = unzigzag(self.rest.varint()?).cast_unsigned();
                self.before = self.before.wrapping_add(step);
                Ok(self.before)
            }
            Coding::Constant => Ok(self.before),
            Coding::Zigzag => Ok(unzigzag(self.rest.varint()?).cast_unsigned()),
            Coding::Xor => {
                self.before ^= self.rest.varint()?.swap_bytes();
                Ok(self.before)
            }
            Coding::Raw => {
                let bytes = self.rest.take(8)?;
                Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
            }
        }
    }

    /// Whether all values were taken.
    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(values: &[u64], coding: Coding) -> (Vec<u64>, usize) {
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        write(values, coding, &mut out, &mut scratch);
        let mut rest = Cursor::new(&out);
        let mut column = Column::take(&mut rest).unwrap();
        let read = values.iter().map(|_| column.next().unwrap()).collect();
        assert!(column.is_empty() && rest.is_empty());
        (read, out.len())
    }

    #[test]
    fn values_come_back_by_every_coding() {
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
    fn what_is_the_same_takes_one_value_and_what_is_noise_eight_bytes() {
        assert_eq!(there_and_back(&[300; 1000], Coding::Varint).1, 4);
        let noise: Vec<u64> = (1..1000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63).collect();
        assert_eq!(there_and_back(&noise, Coding::Varint).1, 3 + 8 * noise.len());
    }

    #[test]
    fn a_column_of_an_unknown_coding_or_length_is_refused() {
        assert_eq!(Column::take(&mut Cursor::new(&[9, 0])).err(), Some(BlockError::Contradiction));
        assert_eq!(Column::take(&mut Cursor::new(&[1, 5, 0])).err(), Some(BlockError::EndsEarly));
        let mut short = Column::take(&mut Cursor::new(&[5, 2, 0, 0])).unwrap();
        assert_eq!(short.next(), Err(BlockError::EndsEarly));
    }
}
