//! What a file says about itself at its beginning, without a look at all the rest.

use std::path::Path;

use super::scanner::{Piece, Scanner};
use super::source::{FileSource, Source};
use crate::file::{BlockKind, Start};

/// A start is much shorter, whatever the command line is.
const MOST_BYTES: u64 = 16 << 20;

/// Returns the start of a recording; `None` if the file is none, or can't be read.
pub fn first_start(path: &Path) -> Option<Start> {
    // Before it is opened: to open a FIFO is to wait.
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let source = FileSource::open(path).ok()?;
    let end = source.size().ok()?.min(MOST_BYTES);
    let mut scanner = Scanner::new(&source, 0..end);
    let Some(Piece::Block(block)) = scanner.next().ok()? else { return None };
    if block.header.kind != BlockKind::Start {
        return None;
    }
    let mut scratch = Vec::new();
    block.header.payload(scanner.stored(&block).ok()?, &mut scratch).and_then(Start::parse).ok()
}
