//! Writes Python's `pickle` format: protocol 4, with only the operations that `PyTorch`'s viewer supports.
//!
//! Texts and other memoized values are written once. Later uses refer to them by their numbers in the memo.

use std::collections::HashMap;
use std::io::{self, Write};

/// The maximum number of items that a list appends at once: the reader keeps them on its stack.
const BATCH: usize = 1000;
const FLUSH_AT: usize = 1 << 16;

/// The number of a value in the memo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoId(u32);

pub(super) struct Pickle<'o> {
    out: &'o mut dyn Write,
    bytes: Vec<u8>,
    texts: HashMap<Box<str>, MemoId>,
    /// The number of values in the memo.
    memo_size: u32,
    /// For each open list, the number of its items on the reader's stack.
    lists: Vec<usize>,
}

impl<'o> Pickle<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        let bytes = vec![0x80, 4];
        Self { out, bytes, texts: HashMap::new(), memo_size: 0, lists: Vec::new() }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.bytes.push(b'.');
        self.out.write_all(&self.bytes)
    }

    /// Memoizes the value that was written last.
    pub(super) fn memoize(&mut self) -> MemoId {
        self.bytes.push(0x94);
        self.memo_size += 1;
        MemoId(self.memo_size - 1)
    }

    pub(super) fn refer(&mut self, to: MemoId) {
        if let Ok(number) = u8::try_from(to.0) {
            self.bytes.extend([b'h', number]);
        } else {
            self.bytes.push(b'j');
            self.bytes.extend(to.0.to_le_bytes());
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        if let Some(known) = self.texts.get(text) {
            return self.refer(*known);
        }
        if let Ok(len) = u8::try_from(text.len()) {
            self.bytes.extend([0x8c, len]);
        } else {
            // No name is longer than 4 GiB.
            let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
            self.bytes.push(b'X');
            self.bytes.extend(len.to_le_bytes());
        }
        self.bytes.extend(text.as_bytes());
        let id = self.memoize();
        self.texts.insert(text.into(), id);
    }

    pub(super) fn integer(&mut self, number: i64) {
        if let Ok(number) = u8::try_from(number) {
            self.bytes.extend([b'K', number]);
        } else if let Ok(number) = u16::try_from(number) {
            self.bytes.push(b'M');
            self.bytes.extend(number.to_le_bytes());
        } else if let Ok(number) = i32::try_from(number) {
            self.bytes.push(b'J');
            self.bytes.extend(number.to_le_bytes());
        } else {
            let bytes = number.to_le_bytes();
            let sign = if number < 0 { 0xff } else { 0 };
            let is_needed =
                |len: &usize| bytes[*len..].iter().any(|byte| *byte != sign) || bytes[len - 1] >> 7 != sign & 1;
            let len = (1..8).find(|len| !is_needed(len)).unwrap_or(8);
            self.bytes.push(0x8a);
            self.bytes.extend(u8::try_from(len));
            self.bytes.extend(&bytes[..len]);
        }
    }

    /// Writes a number that is not negative, at most the greatest signed one.
    pub(super) fn unsigned(&mut self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.bytes.push(if value { 0x88 } else { 0x89 });
    }

    /// Writes a tuple of two numbers.
    pub(super) fn pair(&mut self, numbers: [u64; 2]) {
        for number in numbers {
            self.unsigned(number);
        }
        self.bytes.push(0x86);
    }

    /// Begins a dictionary: keys and values follow in turn, then [`Self::end_dictionary`].
    pub(super) fn begin_dictionary(&mut self) {
        self.bytes.extend(b"}(");
    }

    pub(super) fn end_dictionary(&mut self) {
        self.bytes.push(b'u');
    }

    /// Begins a list: each item follows after [`Self::item`], then [`Self::end_list`].
    pub(super) fn begin_list(&mut self) {
        self.bytes.push(b']');
        self.lists.push(0);
    }

    /// Begins an item of the innermost list. Writes the bytes so far if there are many.
    pub(super) fn item(&mut self) -> io::Result<()> {
        if let Some(count) = self.lists.last_mut() {
            if *count == BATCH {
                self.bytes.push(b'e');
                *count = 0;
            }
            if *count == 0 {
                self.bytes.push(b'(');
            }
            *count += 1;
        }
        if self.bytes.len() >= FLUSH_AT {
            self.out.write_all(&self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }

    pub(super) fn end_list(&mut self) {
        if self.lists.pop().is_some_and(|count| count > 0) {
            self.bytes.push(b'e');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pickled(write: impl FnOnce(&mut Pickle<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut pickle = Pickle::new(&mut bytes);
        write(&mut pickle);
        pickle.finish().unwrap();
        bytes
    }

    #[test]
    fn integers_are_as_short_as_python_writes_them() {
        let of = |number| pickled(|pickle| pickle.integer(number))[2..].to_vec();
        assert_eq!(of(255), b"K\xff.");
        assert_eq!(of(256), b"M\0\x01.");
        assert_eq!(of(-1), b"J\xff\xff\xff\xff.");
        assert_eq!(of(0x8000_0000), b"\x8a\x05\0\0\0\x80\0.");
        assert_eq!(of(0x7f_ffff_ffff), b"\x8a\x05\xff\xff\xff\xff\x7f.");
        assert_eq!(of(-0x8000_0001), b"\x8a\x05\xff\xff\xff\x7f\xff.");
        assert_eq!(of(i64::MAX), b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.");
    }

    #[test]
    fn texts_are_written_once() {
        let bytes = pickled(|pickle| {
            pickle.begin_list();
            for _ in 0..3 {
                pickle.item().unwrap();
                pickle.text("name");
            }
            pickle.end_list();
        });
        assert_eq!(bytes, b"\x80\x04](\x8c\x04name\x94h\0h\0e.");
    }
}
