//! Frames as text, straight from what was copied of their code objects.
//!
//! For dumps of programs that hang: no allocation, no lock, no GIL, async-signal-safe.

use core::fmt;

use stackweave_core::{RawFrame, RawFrameKind, write_place};

use crate::code_blob::CodeBlobs;
use crate::code_names::position;

/// Writes the place of a frame; its bare word if it is not Python's, or its code was never seen.
pub(crate) fn write_frame(blobs: &CodeBlobs, frame: RawFrame, out: &mut dyn fmt::Write) -> fmt::Result {
    let known = match frame.kind() {
        RawFrameKind::Python { code, instruction, .. } => blobs.read(code).map(|(code, _)| (code, instruction)),
        _ => None,
    };
    let Some((code, instruction)) = known else { return write!(out, "{frame:?}") };
    let line = position(&code, instruction).line;
    write_place(out, &code.filename, line, &code.qualname.unwrap_or(code.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::CodeParts;
    use crate::line_table::LineTableFormat;
    use crate::text::Text;

    fn written(blobs: &CodeBlobs, frame: RawFrame) -> String {
        let mut text = String::new();
        write_frame(blobs, frame, &mut text).unwrap();
        text
    }

    #[test]
    fn a_frame_is_written_with_its_file_line_and_longest_name() {
        let blobs = CodeBlobs::new();
        let parts = CodeParts {
            name: Text { width: 1, bytes: b"run" },
            qualname: Some(Text { width: 2, bytes: b"\x03\x04.\0r\0" }),
            filename: Text { width: 1, bytes: b"a\nb.py" },
            first_line: 10,
            line_table: &[4, 1, 6, 2],
            format: LineTableFormat::Lines,
        };
        let id = blobs.intern(&parts).unwrap();
        let at = |instruction| written(&blobs, RawFrame::python(id, instruction, true));
        assert_eq!(at(4), "File \"a\u{fffd}b.py\", line 13 in \u{403}.r");
        assert_eq!(at(100), "File \"a\u{fffd}b.py\", line ? in \u{403}.r");
        let id = blobs.intern(&CodeParts { qualname: None, ..parts }).unwrap();
        assert_eq!(written(&blobs, RawFrame::python(id, 0, true)), "File \"a\u{fffd}b.py\", line 11 in run");
        assert_eq!(written(&CodeBlobs::new(), RawFrame::python(id, 0, true)), "py:^2+0");
    }
}
