//! Writes frames as text, directly from the copies of their code objects.
//!
//! For dumps of programs that hang: no allocation, no lock, no GIL, async-signal-safe.

use core::fmt;

use stackweave_core::{PART_SEPARATOR, RawFrame, RawFrameKind, write_location};

use crate::code::CodeContents;
use crate::code_blob::CodeBlobs;
use crate::code_names::position;

/// Writes the location of a frame; its bare word if it is not a Python frame, or its code was never interned.
pub(crate) fn write_frame(blobs: &CodeBlobs, frame: RawFrame, out: &mut dyn fmt::Write) -> fmt::Result {
    let Some((code, instruction)) = lookup(blobs, frame) else { return write!(out, "{frame:?}") };
    let line = position(&code, instruction).line;
    write_location(out, &code.filename, line, &code.qualname.unwrap_or(code.name))
}

/// Writes the parts of a frame, as [`FrameSource::write_parts`](stackweave_core::FrameSource::write_parts) requires.
pub(crate) fn write_parts(blobs: &CodeBlobs, frame: RawFrame, out: &mut dyn fmt::Write) -> Result<bool, fmt::Error> {
    let Some((code, instruction)) = lookup(blobs, frame) else { return Ok(false) };
    write!(out, "{}{PART_SEPARATOR}", code.name)?;
    if let Some(qualname) = code.qualname {
        write!(out, "{qualname}")?;
    }
    write!(out, "{PART_SEPARATOR}{}{PART_SEPARATOR}", code.filename)?;
    if let Some(line) = position(&code, instruction).line {
        write!(out, "{line}")?;
    }
    write!(out, "{PART_SEPARATOR}{}", code.first_line)?;
    Ok(true)
}

fn lookup(blobs: &CodeBlobs, frame: RawFrame) -> Option<(CodeContents<'_>, u32)> {
    match frame.kind() {
        RawFrameKind::Python { code, instruction, .. } => blobs.read(code).map(|(code, _)| (code, instruction)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_table::LineTableFormat;
    use crate::text::StrText;

    fn written(blobs: &CodeBlobs, frame: RawFrame) -> String {
        let mut text = String::new();
        write_frame(blobs, frame, &mut text).unwrap();
        text
    }

    #[test]
    fn a_frame_is_written_with_its_file_line_and_longest_name() {
        let blobs = CodeBlobs::new();
        let parts = CodeContents {
            name: StrText { width: 1, bytes: b"run" },
            qualname: Some(StrText { width: 2, bytes: b"\x03\x04.\0r\0" }),
            filename: StrText { width: 1, bytes: b"a\nb.py" },
            first_line: 10,
            line_table: &[4, 1, 6, 2],
            format: LineTableFormat::Lines,
        };
        let id = blobs.intern(&parts).unwrap();
        let at = |instruction| written(&blobs, RawFrame::python(id, instruction, true));
        assert_eq!(at(4), "File \"a\u{fffd}b.py\", line 13 in \u{403}.r");
        assert_eq!(at(100), "File \"a\u{fffd}b.py\", line ? in \u{403}.r");
        let id = blobs.intern(&CodeContents { qualname: None, ..parts }).unwrap();
        assert_eq!(written(&blobs, RawFrame::python(id, 0, true)), "File \"a\u{fffd}b.py\", line 11 in run");
        assert_eq!(written(&CodeBlobs::new(), RawFrame::python(id, 0, true)), "py:^2+0");
    }

    #[test]
    fn the_parts_of_a_frame_have_no_separator_in_them() {
        let blobs = CodeBlobs::new();
        let parts = CodeContents {
            name: StrText { width: 1, bytes: b"a\x1fb" },
            qualname: Some(StrText { width: 1, bytes: b"C.a\tb" }),
            filename: StrText { width: 1, bytes: b"x.py" },
            first_line: 10,
            line_table: &[4, 1, 6, 2],
            format: LineTableFormat::Lines,
        };
        let of = |parts: &CodeContents<'_>, instruction| {
            let (id, mut text) = (blobs.intern(parts).unwrap(), String::new());
            let is_known = write_parts(&blobs, RawFrame::python(id, instruction, true), &mut text).unwrap();
            assert!(is_known);
            text
        };
        assert_eq!(of(&parts, 4), "a\u{fffd}b\u{1f}C.a\u{fffd}b\u{1f}x.py\u{1f}13\u{1f}10");
        assert_eq!(of(&CodeContents { qualname: None, ..parts }, 100), "a\u{fffd}b\u{1f}\u{1f}x.py\u{1f}\u{1f}10");
        let mut text = String::new();
        assert_eq!(write_parts(&blobs, RawFrame::script(0, 1), &mut text), Ok(false));
        assert_eq!(text, "");
    }
}
