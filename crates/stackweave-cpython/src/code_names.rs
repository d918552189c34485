//! Converts frames to names: the contents of a code object are decoded once and shared.
//!
//! Off the hot path. The lock is never waited for: a thread that finds it locked, perhaps forever in a forked child,
//! decodes without sharing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use stackweave_core::{BlobId, CodeId, Position, RawFrame, RawFrameKind, SourceLocation};

use crate::code::CodeContents;
use crate::code_blob::CodeBlobs;
use crate::line_table::LineTable;
use crate::text::StrText;

/// The names of code objects that have been decoded so far.
#[derive(Debug, Default)]
pub(crate) struct CodeNames {
    decoded: Mutex<DecodedCodes>,
    /// The number of code objects that were decoded; readable while the mutex is locked.
    len: AtomicUsize,
}

#[derive(Debug, Default)]
struct DecodedCodes {
    /// By the id of the code.
    codes: Vec<Option<Box<DecodedCode>>>,
    len: usize,
    files: HashMap<BlobId, Arc<str>>,
}

#[derive(Debug)]
struct DecodedCode {
    name: Arc<str>,
    qualname: Option<Arc<str>>,
    filename: Arc<str>,
    first_line: Option<u32>,
    /// The positions that were looked up, in the order of the instructions.
    positions: Vec<(u32, Position)>,
}

impl CodeNames {
    /// Returns the location of a frame; `None` if it is not a Python frame, or its code was never interned.
    pub(crate) fn locate(&self, blobs: &CodeBlobs, frame: RawFrame) -> Option<SourceLocation> {
        let RawFrameKind::Python { code, instruction, .. } = frame.kind() else { return None };
        let mut decoded = match self.decoded.try_lock() {
            Ok(decoded) => decoded,
            Err(TryLockError::Poisoned(decoded)) => decoded.into_inner(),
            Err(TryLockError::WouldBlock) => return DecodedCodes::default().locate(blobs, code, instruction),
        };
        let location = decoded.locate(blobs, code, instruction);
        self.len.store(decoded.len, Ordering::Relaxed);
        location
    }

    /// Returns how many code objects were decoded.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}

impl DecodedCodes {
    fn locate(&mut self, blobs: &CodeBlobs, id: CodeId, instruction: u32) -> Option<SourceLocation> {
        let code = self.code(blobs, id)?;
        let position = match code.positions.binary_search_by_key(&instruction, |(known, _)| *known) {
            Ok(index) => code.positions[index].1,
            Err(index) => {
                let position = position(&blobs.read(id)?.0, instruction);
                code.positions.insert(index, (instruction, position));
                position
            }
        };
        Some(SourceLocation {
            name: Arc::clone(&code.name),
            qualname: code.qualname.clone(),
            filename: Arc::clone(&code.filename),
            first_line: code.first_line,
            position,
        })
    }

    fn code(&mut self, blobs: &CodeBlobs, id: CodeId) -> Option<&mut DecodedCode> {
        let index = id.get() as usize;
        if self.codes.get(index).is_none_or(Option::is_none) {
            let code = self.decode(blobs, id)?;
            if self.codes.len() <= index {
                self.codes.resize_with(index + 1, || None);
            }
            self.codes[index] = Some(Box::new(code));
            self.len += 1;
        }
        self.codes.get_mut(index)?.as_deref_mut()
    }

    fn decode(&mut self, blobs: &CodeBlobs, id: CodeId) -> Option<DecodedCode> {
        let (parts, file) = blobs.read(id)?;
        let shared = |text: StrText<'_>| -> Arc<str> { text.decode().into() };
        let name = shared(parts.name);
        let qualname = parts.qualname.map(shared);
        let qualname = qualname.map(|qualname| if qualname == name { Arc::clone(&name) } else { qualname });
        let filename = Arc::clone(self.files.entry(file).or_insert_with(|| shared(parts.filename)));
        let first_line = u32::try_from(parts.first_line).ok();
        Some(DecodedCode { name, qualname, filename, first_line, positions: Vec::new() })
    }
}

/// Returns the position of an instruction, without allocation or lock. A frame that has run none is at the first line.
pub(crate) fn position(code: &CodeContents<'_>, instruction: u32) -> Position {
    if instruction == RawFrame::MAX_INSTRUCTION {
        let line = u32::try_from(code.first_line).ok();
        return Position { line, end_line: line, ..Position::default() };
    }
    LineTable::new(code.line_table, code.first_line, code.format).position(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_table::LineTableFormat;

    fn code(name: &str, line_table: &[u8]) -> (CodeBlobs, CodeId) {
        let blobs = CodeBlobs::new();
        let text = |text: &'static str| StrText { width: 1, bytes: text.as_bytes() };
        let id = blobs.intern(&CodeContents {
            name: StrText { width: 1, bytes: name.as_bytes() },
            qualname: Some(text("inner")),
            filename: text("file.py"),
            first_line: 10,
            line_table,
            format: LineTableFormat::Lines,
        });
        (blobs, id.unwrap())
    }

    #[test]
    fn names_are_shared_and_lines_are_those_of_the_instruction() {
        let names = CodeNames::default();
        let (blobs, id) = code("inner", &[4, 1, 6, 2]);
        let at = |instruction| names.locate(&blobs, RawFrame::python(id, instruction, true)).unwrap();
        let lines = [0, 4, 3, 5, 10, u32::MAX].map(|instruction| at(instruction).position.line);
        assert_eq!(lines, [Some(11), Some(13), Some(11), Some(13), None, Some(10)]);
        assert!(Arc::ptr_eq(&at(0).name, &at(4).name) && Arc::ptr_eq(&at(0).filename, &at(4).filename));
        assert!(Arc::ptr_eq(&at(0).name, &at(0).qualname.unwrap()));
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn a_code_that_was_never_interned_has_no_name() {
        let names = CodeNames::default();
        let (blobs, id) = code("inner", &[]);
        let next = CodeId::new(id.get() + 1).unwrap();
        assert_eq!(names.locate(&blobs, RawFrame::python(next, 0, false)), None);
        assert_eq!(names.locate(&blobs, RawFrame::script(1, 1)), None);
        assert_eq!(names.len(), 0);
    }

    #[test]
    fn a_locked_mutex_is_not_waited_for() {
        let names = CodeNames::default();
        let (blobs, id) = code("other", &[4, 1]);
        let locked = names.decoded.lock().unwrap();
        let location = names.locate(&blobs, RawFrame::python(id, 0, true)).unwrap();
        assert_eq!((&*location.name, location.position.line), ("other", Some(11)));
        assert!(locked.codes.is_empty());
    }
}
