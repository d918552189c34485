//! Reading only the Start of a file.

use std::path::Path;

use super::scanner::{FilePart, Scanner};
use super::source::{FileSource, RecordingSource};
use crate::file::{BlockKind, ProcessStart};

/// The maximum length of a Start, which no command line reaches.
const MAX_BYTES: u64 = 16 << 20;

/// Returns the Start of a recording; `None` if the file is no recording, or can't be read.
pub fn first_start(path: &Path) -> Option<ProcessStart> {
    // Checked before it is opened, because opening a FIFO blocks.
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let source = FileSource::open(path).ok()?;
    let end = source.size().ok()?.min(MAX_BYTES);
    let mut scanner = Scanner::new(&source, 0..end);
    let Some(FilePart::Block(block)) = scanner.next().ok()? else { return None };
    if block.header.kind != BlockKind::Start {
        return None;
    }
    let mut scratch = Vec::new();
    block.header.payload(scanner.stored(&block).ok()?, &mut scratch).and_then(ProcessStart::parse).ok()
}
