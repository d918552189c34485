//! Writes protocol buffers: fields with numbers, one after another.
//!
//! Decision 022 explains why this uses no crate.

/// A message that is being written. All given fields are written, even zeros: the caller leaves out defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const BYTES: u32 = 2;

impl Message {
    /// Returns the bytes that were written so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Clears the message, and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Writes a field of type `uint64`, `uint32`, `bool` or an enumeration.
    pub(crate) fn unsigned(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        put(&mut self.bytes, value);
    }

    /// Writes a field of type `int64` or `int32`, but not `sint64`.
    pub(crate) fn signed(&mut self, field: u32, value: i64) {
        self.unsigned(field, value.cast_unsigned());
    }

    /// Writes a field of type `double`.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.tag(field, FIXED_64);
        self.bytes.extend(value.to_le_bytes());
    }

    /// Writes a field of type `fixed64`.
    pub(crate) fn fixed(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED_64);
        self.bytes.extend(value.to_le_bytes());
    }

    /// Writes a field of type `string`.
    pub(crate) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Writes a field of type `bytes`.
    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, BYTES);
        put(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// Writes a repeated field of numbers, packed.
    pub(crate) fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        self.message(field, |inner| values.into_iter().for_each(|value| put(&mut inner.bytes, value)));
    }

    /// Writes a field that is a message.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.tag(field, BYTES);
        let start = self.bytes.len();
        // Most lengths fit in one byte.
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - start - 1;
        if let Ok(short @ 0..0x80) = u8::try_from(length) {
            self.bytes[start] = short;
        } else {
            let mut encoded = Vec::with_capacity(10);
            put(&mut encoded, length as u64);
            self.bytes.splice(start..=start, encoded);
        }
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        put(&mut self.bytes, u64::from(field << 3 | wire_type));
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the examples and the rules of the specification of the encoding.
    #[test]
    fn fields_are_written_as_specified() {
        let written = |write: &dyn Fn(&mut Message)| {
            let mut message = Message::default();
            write(&mut message);
            message.as_bytes().to_vec()
        };
        assert_eq!(written(&|message| message.unsigned(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(written(&|message| message.text(2, "testing")), b"\x12\x07testing");
        assert_eq!(written(&|message| message.message(3, |inner| inner.unsigned(1, 150))), [0x1a, 3, 8, 0x96, 1]);
        assert_eq!(written(&|message| message.packed(6, [3, 270, 86_942])), [0x32, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5]);
        assert_eq!(written(&|message| message.signed(1, -2)), [8, 0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(written(&|message| message.double(16, 1.0)), [0x81, 1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(written(&|message| message.fixed(1, 2)), [9, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(written(&|message| message.bytes(1, &[])), [10, 0]);
    }

    #[test]
    fn long_messages_have_long_lengths() {
        for length in [0, 127, 128, 300, 20_000] {
            let mut message = Message::default();
            message.message(1, |inner| inner.bytes.resize(inner.bytes.len() + length, 7));
            let mut expected = vec![10];
            put(&mut expected, length as u64);
            expected.resize(expected.len() + length, 7);
            assert_eq!(message.as_bytes(), expected);
            message.clear();
            assert!(message.as_bytes().is_empty());
        }
    }
}
