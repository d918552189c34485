//! Reads Python's `marshal` format, as far as tables of `cProfile` use it: numbers, text, tuples and dictionaries.
//!
//! Python's own reader is not safe for untrusted bytes. This one creates no code objects, limits the depth to that of a
//! table, and allocates memory only in proportion to the bytes.

use std::sync::Arc;

/// A table is a dictionary of tuples that contain a dictionary of tuples, numbers and text.
const MAX_DEPTH: u32 = 6;
/// This bit in the code of a value means that later values may refer to it.
const IS_REFERENCED: u8 = 0x80;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    None,
    Integer(i64),
    Float(f64),
    Text(Arc<str>),
    Tuple(Arc<[Self]>),
    /// Never referred to, and so never duplicated.
    Dictionary(Arc<[(Self, Self)]>),
}

/// Returns the first value of the bytes; `None` if it is of a type that tables do not have, or truncated.
pub(crate) fn read(bytes: &[u8]) -> Option<Value> {
    MarshalReader { rest: bytes, references: Vec::new() }.value(0)
}

/// The next item.
enum Item {
    Value(Value),
    /// The end of the dictionary.
    End,
}

struct MarshalReader<'a> {
    rest: &'a [u8],
    /// The values that can be referred to; `None` while a value is being read, and for types that can't be referred to.
    references: Vec<Option<Value>>,
}

impl MarshalReader<'_> {
    fn value(&mut self, depth: u32) -> Option<Value> {
        match self.next(depth)? {
            Item::Value(value) => Some(value),
            Item::End => None,
        }
    }

    fn next(&mut self, depth: u32) -> Option<Item> {
        if depth > MAX_DEPTH {
            return None;
        }
        let code = self.take(1)?[0];
        let index = (code & IS_REFERENCED != 0).then(|| {
            self.references.push(None);
            self.references.len() - 1
        });
        let value = match code & !IS_REFERENCED {
            b'0' => return Some(Item::End),
            b'N' => Value::None,
            b'F' => Value::Integer(0),
            b'T' => Value::Integer(1),
            b'i' => Value::Integer(self.number()?.into()),
            b'l' => Value::Integer(self.long()?),
            b'g' => Value::Float(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            b'f' => Value::Float(self.short_text()?.parse().ok()?),
            b'u' | b't' | b'a' | b'A' => {
                let length = self.length()?;
                self.text(length)?
            }
            b'z' | b'Z' => Value::Text(self.short_text()?.into()),
            b'(' => {
                let length = self.length()?;
                self.tuple(length, depth)?
            }
            b')' => {
                let length = usize::from(self.take(1)?[0]);
                self.tuple(length, depth)?
            }
            b'{' => return self.dictionary(depth).map(Item::Value),
            b'r' => {
                let index = self.length()?;
                return self.references.get(index)?.clone().map(Item::Value);
            }
            _ => return None,
        };
        if let Some(index) = index {
            self.references[index] = Some(value.clone());
        }
        Some(Item::Value(value))
    }

    fn tuple(&mut self, length: usize, depth: u32) -> Option<Value> {
        // Each value has at least one byte.
        if length > self.rest.len() {
            return None;
        }
        let values: Option<Vec<Value>> = (0..length).map(|_| self.value(depth + 1)).collect();
        Some(Value::Tuple(values?.into()))
    }

    fn dictionary(&mut self, depth: u32) -> Option<Value> {
        let mut entries = Vec::new();
        while let Item::Value(key) = self.next(depth + 1)? {
            entries.push((key, self.value(depth + 1)?));
        }
        Some(Value::Dictionary(entries.into()))
    }

    fn text(&mut self, length: usize) -> Option<Value> {
        Some(Value::Text(String::from_utf8_lossy(self.take(length)?).into()))
    }

    fn short_text(&mut self) -> Option<String> {
        let length = usize::from(self.take(1)?[0]);
        Some(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    /// Reads digits of 15 bits, the lowest first; their number is negative if the value is.
    fn long(&mut self) -> Option<i64> {
        let length = self.number()?;
        let digits = self.take(usize::try_from(length.unsigned_abs()).ok()?.checked_mul(2)?)?;
        let digit = |pair: &[u8]| i128::from(u16::from_le_bytes([pair[0], pair[1]]));
        let value = digits
            .chunks_exact(2)
            .rev()
            .try_fold(0_i128, |value, pair| value.checked_mul(1 << 15)?.checked_add(digit(pair)))?;
        i64::try_from(if length < 0 { -value } else { value }).ok()
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn number(&mut self) -> Option<i32> {
        Some(i32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marshal::Marshal;

    #[test]
    fn written_values_are_read_back() {
        let mut bytes = Vec::new();
        let mut out = Marshal::new(&mut bytes);
        out.begin_dict().unwrap();
        out.tuple(3).unwrap();
        out.text("\u{fc}").unwrap();
        out.integer(7).unwrap();
        out.integer(1 << 40).unwrap();
        out.float(0.5).unwrap();
        out.end_dict().unwrap();
        let key = [Value::Text("\u{fc}".into()), Value::Integer(7), Value::Integer(1 << 40)];
        let table = Value::Dictionary([(Value::Tuple(key.into()), Value::Float(0.5))].into());
        assert_eq!(read(&bytes), Some(table));
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), None, "cut to {length}");
        }
    }

    #[test]
    fn values_can_refer_to_earlier_ones() {
        // ("ab", "ab", -70000), as Python 3 writes it: the second is a reference.
        let bytes = b"\xa9\x03\xda\x02abr\x01\x00\x00\x00i\x90\xee\xfe\xff";
        let text = Value::Text("ab".into());
        assert_eq!(read(bytes), Some(Value::Tuple([text.clone(), text, Value::Integer(-70_000)].into())));
    }

    #[test]
    fn hostile_bytes_are_rejected() {
        let deep: Vec<u8> = b")\x01".repeat(1_000_000);
        let itself = b"\xa9\x01r\x00\x00\x00\x00";
        let twice = b")\x02\xfb0r\x00\x00\x00\x00";
        let refused: [&[u8]; 9] =
            [b"", b"c", &deep, itself, twice, b"(\xff\xff\xff\x7f", b"u\xff\xff\xff\xff", b"l\x00\x00\x00\x80", b"{0N"];
        for bytes in &refused[..8] {
            assert_eq!(read(bytes), None, "{:?}", &bytes[..bytes.len().min(20)]);
        }
        assert_eq!(read(refused[8]), Some(Value::Dictionary([].into())));
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    b"{0()\xa9Nizr\x00\x01\x02"[(state >> 40) as usize % 12]
                })
                .collect();
            let _ = read(&bytes);
        }
    }
}
