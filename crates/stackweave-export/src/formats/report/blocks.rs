//! The data of the page: numbered blocks, each compressed by zlib and encoded as base64.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::Value;

/// The blocks of a page, written one after another.
pub(super) struct PageBlocks<'o> {
    out: &'o mut dyn Write,
    next: u32,
    text: String,
}

impl<'o> PageBlocks<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, next: 0, text: String::new() }
    }

    /// Writes a block, and returns its number.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<u32> {
        let number = self.next;
        self.next += 1;
        self.write(&number.to_string(), bytes, Compression::default())?;
        Ok(number)
    }

    pub(super) fn columns(&mut self, columns: &Columns) -> io::Result<u32> {
        self.bytes(&columns.bytes)
    }

    /// Writes columns of which a page has very many: compressed less, and much faster.
    pub(super) fn many_columns(&mut self, columns: &Columns) -> io::Result<u32> {
        let number = self.next;
        self.next += 1;
        self.write(&number.to_string(), &columns.bytes, Compression::fast())?;
        Ok(number)
    }

    pub(super) fn json(&mut self, value: &Value) -> io::Result<u32> {
        self.bytes(value.to_string().as_bytes())
    }

    /// Writes the head, which describes the other blocks.
    pub(super) fn head(&mut self, head: &Value) -> io::Result<()> {
        self.write("head", head.to_string().as_bytes(), Compression::default())
    }

    fn write(&mut self, id: &str, bytes: &[u8], compression: Compression) -> io::Result<()> {
        let mut compressed = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 2), compression);
        compressed.write_all(bytes)?;
        let compressed = compressed.finish()?;
        self.text.clear();
        STANDARD.encode_string(&compressed, &mut self.text);
        write!(self.out, "<script type=\"application/vnd.stackweave\" id=\"sw-{id}\">")?;
        self.out.write_all(self.text.as_bytes())?;
        self.out.write_all(b"</script>\n")
    }
}

/// Columns of numbers, in the encoding that the page reads.
#[derive(Debug, Default)]
pub(super) struct Columns {
    bytes: Vec<u8>,
}

impl Columns {
    pub(super) fn plain(&mut self, column: impl ExactSizeIterator<Item = u64>) {
        self.number(column.len() as u64);
        column.for_each(|value| self.number(value));
    }

    pub(super) fn signed(&mut self, column: impl ExactSizeIterator<Item = i64>) {
        self.plain(column.map(|value| (value << 1 ^ value >> 63).cast_unsigned()));
    }

    /// Adds the differences of values that never decrease, the first one relative to `from`.
    pub(super) fn differences(&mut self, column: impl ExactSizeIterator<Item = u64>, from: u64) {
        let mut before = from;
        self.plain(column.map(|value| value.saturating_sub(core::mem::replace(&mut before, value))));
    }

    /// Adds bytes after the columns.
    pub(super) fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    fn number(&mut self, mut value: u64) {
        while value >= 128 {
            self.bytes.push((value & 127) as u8 | 128);
            value >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_have_short_encodings() {
        let mut columns = Columns::default();
        columns.plain([0, 127, 128, 300].into_iter());
        columns.signed([0, -1, 1, -64].into_iter());
        assert_eq!(columns.bytes, [4, 0, 127, 0x80, 1, 0xac, 2, 4, 0, 1, 2, 127]);
    }
}
