//! Reads Python's `marshal`, as far as tables of `cProfile` go: numbers, text, tuples and dictionaries.
//!
//! Python's own reader is not made for bytes that somebody else has chosen. This one makes no code objects, goes no deeper than such
//! a table does, and allocates no more than the bytes that are there account for.

use std::sync::Arc;

/// A table is a dictionary of tuples that hold a dictionary of tuples, and numbers and text.
const DEEPEST: u32 = 6;
/// This bit in the code of a value says that later ones may refer to it.
const IS_KEPT: u8 = 0x80;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    None,
    Integer(i64),
    Float(f64),
    Text(Arc<str>),
    Tuple(Arc<[Self]>),
    /// Never referred to, and so never there twice.
    Dictionary(Arc<[(Self, Self)]>),
}

/// Returns the value that the bytes begin with; `None` if it is something else than a table has, or ends early.
pub(crate) fn read(bytes: &[u8]) -> Option<Value> {
    Reader { rest: bytes, kept: Vec::new() }.value(0)
}

/// What comes next.
enum Next {
    Value(Value),
    /// The dictionary has no more entries.
    End,
}

struct Reader<'a> {
    rest: &'a [u8],
    /// What was kept so far; `None` while it is being read, and for what can't be referred to.
    kept: Vec<Option<Value>>,
}

impl Reader<'_> {
    fn value(&mut self, depth: u32) -> Option<Value> {
        match self.next(depth)? {
            Next::Value(value) => Some(value),
            Next::End => None,
        }
    }

    fn next(&mut self, depth: u32) -> Option<Next> {
        if depth > DEEPEST {
            return None;
        }
        let code = self.take(1)?[0];
        let place = (code & IS_KEPT != 0).then(|| {
            self.kept.push(None);
            self.kept.len() - 1
        });
        let value = match code & !IS_KEPT {
            b'0' => return Some(Next::End),
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
            b'{' => return self.dictionary(depth).map(Next::Value),
            b'r' => {
                let place = self.length()?;
                return self.kept.get(place)?.clone().map(Next::Value);
            }
            _ => return None,
        };
        if let Some(place) = place {
            self.kept[place] = Some(value.clone());
        }
        Some(Next::Value(value))
    }

    fn tuple(&mut self, length: usize, depth: u32) -> Option<Value> {
        // Each value takes a byte at least.
        if length > self.rest.len() {
            return None;
        }
        let values: Option<Vec<Value>> = (0..length).map(|_| self.value(depth + 1)).collect();
        Some(Value::Tuple(values?.into()))
    }

    fn dictionary(&mut self, depth: u32) -> Option<Value> {
        let mut entries = Vec::new();
        while let Next::Value(key) = self.next(depth + 1)? {
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

    /// Digits of 15 bits, the lowest first; as many as the number says, which is less than 0 if the value is.
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
    fn what_is_written_comes_back() {
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
    fn later_values_refer_to_earlier_ones() {
        // ("ab", "ab", -70000), as Python 3 writes it: the second is a reference.
        let bytes = b"\xa9\x03\xda\x02abr\x01\x00\x00\x00i\x90\xee\xfe\xff";
        let text = Value::Text("ab".into());
        assert_eq!(read(bytes), Some(Value::Tuple([text.clone(), text, Value::Integer(-70_000)].into())));
    }

    #[test]
    fn hostile_bytes_are_refused() {
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
