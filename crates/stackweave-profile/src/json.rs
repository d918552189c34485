//! Resolved stacks as JSON.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::frame::Frame;

/// Writes a list of stacks, each a list of frames as written by [`Frame::write_json`], innermost first.
pub fn write_json(out: &mut dyn Write, stacks: &[Arc<[Arc<Frame>]>]) -> io::Result<()> {
    let mut frames = WrittenFrames::default();
    let mut text = b"[".to_vec();
    for (index, stack) in stacks.iter().enumerate() {
        text.extend_from_slice(if index == 0 { b"[" } else { b",[" });
        for (index, frame) in stack.iter().enumerate() {
            text.extend_from_slice(if index == 0 { b"" } else { b"," });
            text.extend_from_slice(frames.text(frame)?);
        }
        text.push(b']');
        out.write_all(&text)?;
        text.clear();
    }
    text.push(b']');
    out.write_all(&text)
}

impl Frame {
    /// Writes an object with `name`, `filename` (empty if unknown) and `line` (0 if unknown), then `kind`, `qualname`,
    /// `column`, `end_line`, `end_column`, `module`, `inlined` and `address` (a hexadecimal string). Of these `kind`
    /// and `inlined` are always there, the others if they are known.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { kind, name, qualname, filename, first_line: _, position, module, is_inlined, address, is_own: _ } =
            self;
        write_string(write_key(out, b"{\"", "name")?, name)?;
        write_string(write_key(out, b",\"", "filename")?, filename.as_deref().unwrap_or_default())?;
        write!(write_key(out, b",\"", "line")?, "{}", position.line.unwrap_or(0))?;
        write_string(write_key(out, b",\"", "kind")?, kind.as_str())?;
        if let Some(qualname) = qualname {
            write_string(write_key(out, b",\"", "qualname")?, qualname)?;
        }
        let numbers = [position.column, position.end_line, position.end_column];
        for (key, number) in ["column", "end_line", "end_column"].into_iter().zip(numbers) {
            if let Some(number) = number {
                write!(write_key(out, b",\"", key)?, "{number}")?;
            }
        }
        if let Some(module) = module {
            write_string(write_key(out, b",\"", "module")?, module)?;
        }
        write!(write_key(out, b",\"", "inlined")?, "{is_inlined}")?;
        if let Some(address) = address {
            write!(write_key(out, b",\"", "address")?, "\"{address:#x}\"")?;
        }
        out.write_all(b"}")
    }
}

/// The text of each frame, formatted once: stacks share most of them.
#[derive(Debug, Default)]
struct WrittenFrames {
    text: Vec<u8>,
    ranges: HashMap<*const Frame, Range<usize>>,
}

impl WrittenFrames {
    fn text(&mut self, frame: &Arc<Frame>) -> io::Result<&[u8]> {
        let key = Arc::as_ptr(frame);
        if let Some(range) = self.ranges.get(&key) {
            return Ok(&self.text[range.clone()]);
        }
        let start = self.text.len();
        frame.write_json(&mut self.text)?;
        self.ranges.insert(key, start..self.text.len());
        Ok(&self.text[start..])
    }
}

fn write_key<'a>(out: &'a mut dyn Write, before: &[u8], key: &str) -> io::Result<&'a mut dyn Write> {
    out.write_all(before)?;
    out.write_all(key.as_bytes())?;
    out.write_all(b"\":")?;
    Ok(out)
}

/// Writes a string, and escapes only what JSON does not allow.
fn write_string(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(b"\"")?;
    let mut rest = text.as_bytes();
    while let Some(index) = rest.iter().position(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\')) {
        out.write_all(&rest[..index])?;
        match rest[index] {
            b'\n' => out.write_all(b"\\n")?,
            b'\r' => out.write_all(b"\\r")?,
            b'\t' => out.write_all(b"\\t")?,
            control @ 0..=0x1f => write!(out, "\\u{control:04x}")?,
            other => out.write_all(&[b'\\', other])?,
        }
        rest = &rest[index + 1..];
    }
    out.write_all(rest)?;
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameKind;
    use stackweave_core::Position;

    fn text(frame: &Frame) -> String {
        let mut out = Vec::new();
        frame.write_json(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_have_an_order_and_unknown_fields_are_left_out() {
        let bare = Frame::named(FrameKind::Script, "f".into());
        assert_eq!(text(&bare), r#"{"name":"f","filename":"","line":0,"kind":"script","inlined":false}"#);
        let whole = Frame {
            kind: FrameKind::Native,
            name: "f".into(),
            qualname: Some("C.f".into()),
            filename: Some("a.py".into()),
            first_line: Some(1),
            position: Position { line: Some(3), end_line: Some(4), column: Some(0), end_column: Some(9) },
            module: Some("m.so".into()),
            is_inlined: true,
            address: Some(0x7f00_1234),
            is_own: false,
        };
        assert_eq!(
            text(&whole),
            r#"{"name":"f","filename":"a.py","line":3,"kind":"native","qualname":"C.f","column":0,"end_line":4,"#
                .to_owned()
                + r#""end_column":9,"module":"m.so","inlined":true,"address":"0x7f001234"}"#
        );
    }

    #[test]
    fn stacks_are_nested_lists() {
        let written = |stacks: &[Arc<[Arc<Frame>]>]| {
            let mut out = Vec::new();
            write_json(&mut out, stacks).unwrap();
            String::from_utf8(out).unwrap()
        };
        let frame = Arc::new(Frame::named(FrameKind::Extra, "\"\\\n\u{1}".into()));
        let object = r#"{"name":"\"\\\n\u0001","filename":"","line":0,"kind":"extra","inlined":false}"#;
        assert_eq!(text(&frame), object);
        assert_eq!(written(&[]), "[]");
        assert_eq!(written(&[Arc::new([])]), "[[]]");
        let stacks: [Arc<[_]>; 3] = [[&frame, &frame].map(Arc::clone).into(), Arc::new([]), Arc::new([frame])];
        assert_eq!(written(&stacks), format!("[[{object},{object}],[],[{object}]]"));
    }

    #[test]
    fn an_error_of_the_writer_is_returned() {
        struct FullWriter;
        impl Write for FullWriter {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(write_json(&mut FullWriter, &[]).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
