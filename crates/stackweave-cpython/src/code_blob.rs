//! Code objects as bytes: all that names a frame in one blob, and the file name, which many share, in another.
//!
//! Characters keep the interpreter's width, so that writing needs no conversion and no memory, and equal code objects
//! have equal blobs.
//!
//! Hot file, except for reading: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::{BlobId, CodeId};
use stackweave_store::BlobTable;

use crate::code::CodeContents;
use crate::line_table::LineTableFormat;
use crate::text::StrText;

/// The length of what precedes the name, the qualified name and the line table.
const HEADER: usize = 20;

const FORMATS: [LineTableFormat; 4] =
    [LineTableFormat::Unknown, LineTableFormat::Steps, LineTableFormat::Lines, LineTableFormat::Locations];

/// Code objects and their file names.
#[derive(Debug)]
pub(crate) struct CodeBlobs {
    pub(crate) codes: BlobTable,
    pub(crate) files: BlobTable,
}

impl CodeBlobs {
    pub(crate) const fn new() -> Self {
        Self { codes: BlobTable::new(), files: BlobTable::new() }
    }

    /// Returns the id of a code object: equal code objects have equal ids. `None` if there is no memory for a new one.
    pub(crate) fn intern(&self, code: &CodeContents<'_>) -> Option<CodeId> {
        let filename = self.files.intern(&[&[code.filename.width], code.filename.bytes])?;
        let qualname = code.qualname.unwrap_or(StrText { width: 0, bytes: &[] });
        let format = FORMATS.iter().position(|format| *format == code.format)?;
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&filename.get().to_le_bytes());
        header[4..8].copy_from_slice(&code.first_line.to_le_bytes());
        header[8..12].copy_from_slice(&u32::try_from(code.name.bytes.len()).ok()?.to_le_bytes());
        header[12..16].copy_from_slice(&u32::try_from(qualname.bytes.len()).ok()?.to_le_bytes());
        header[16..].copy_from_slice(&[code.name.width, qualname.width, format as u8, 0]);
        let blob = self.codes.intern(&[&header, code.name.bytes, qualname.bytes, code.line_table])?;
        CodeId::new(blob.get())
    }

    /// Returns the contents of a code object, and the id of its file; `None` for an unknown id.
    pub(crate) fn read(&self, code: CodeId) -> Option<(CodeContents<'_>, BlobId)> {
        let (header, rest) = self.codes.get(BlobId::new(code.get())?)?.split_first_chunk::<HEADER>()?;
        let word = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let (name, rest) = rest.split_at_checked(word(8)? as usize)?;
        let (qualname, line_table) = rest.split_at_checked(word(12)? as usize)?;
        let file = BlobId::new(word(0)?)?;
        let (width, filename) = self.files.get(file)?.split_first()?;
        let [.., name_width, qualname_width, format, _] = *header;
        let parts = CodeContents {
            name: StrText { width: name_width, bytes: name },
            qualname: (qualname_width != 0).then_some(StrText { width: qualname_width, bytes: qualname }),
            filename: StrText { width: *width, bytes: filename },
            first_line: word(4)?.cast_signed(),
            line_table,
            format: *FORMATS.get(usize::from(format))?,
        };
        Some((parts, file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &[u8]) -> CodeContents<'_> {
        CodeContents {
            name: StrText { width: 1, bytes: name },
            qualname: Some(StrText { width: 2, bytes: b"o\0.\0i\0" }),
            filename: StrText { width: 1, bytes: b"file.py" },
            first_line: -7,
            line_table: &[1, 2, 3],
            format: LineTableFormat::Locations,
        }
    }

    #[test]
    fn interned_contents_can_be_read() {
        let blobs = CodeBlobs::new();
        let nothing = StrText { width: 1, bytes: b"" };
        let bare = CodeContents { name: nothing, qualname: None, filename: nothing, line_table: b"", ..code(b"") };
        for parts in [code(b"inner"), bare, CodeContents { format: LineTableFormat::Unknown, ..code(b"x") }] {
            let id = blobs.intern(&parts).unwrap();
            assert_eq!(blobs.intern(&parts), Some(id));
            assert_eq!(blobs.read(id).unwrap().0, parts);
        }
        assert_eq!((blobs.codes.len(), blobs.files.len()), (3, 2));
        assert_eq!(blobs.read(CodeId::new(4).unwrap()), None);
    }

    #[test]
    fn ids_differ_if_any_part_differs() {
        let blobs = CodeBlobs::new();
        let base = code(b"inner");
        let others = [
            base,
            CodeContents { name: StrText { width: 2, bytes: base.name.bytes }, ..base },
            CodeContents { name: StrText { width: 1, bytes: b"innero" }, ..base },
            CodeContents { qualname: None, ..base },
            CodeContents { filename: StrText { width: 1, bytes: b"other.py" }, ..base },
            CodeContents { first_line: 7, ..base },
            CodeContents { line_table: &[1, 2], ..base },
            CodeContents { format: LineTableFormat::Lines, ..base },
        ];
        let mut ids: Vec<_> = others.iter().map(|parts| blobs.intern(parts).unwrap()).collect();
        ids.dedup();
        assert_eq!(ids.len(), others.len());
    }
}
