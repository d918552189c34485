//! A scanner for the blocks of a file, and the damaged parts between them.
//!
//! A block's header guarantees its length, so payloads are skipped unread. If there is no header at the end of a block, either the
//! next block is damaged, or this block is shorter than its header says, because its writer was stopped and another program
//! appended to the file. The checksum of the payload distinguishes the two cases, and the search for the next header begins after
//! the block or inside it.

use std::io;
use std::ops::Range;

use super::source::RecordingSource;
use super::window::Window;
use crate::file::{BlockError, BlockHeader, SYNC};

/// The number of bytes that are read at once for a header and what follows it.
const LOOK: usize = 256;
/// The number of bytes that are read at once in search of a header.
const SEARCH: usize = 64 << 10;

/// The number of bytes that may be read to check payloads in any file, however short.
const MIN_CHECKS: u64 = 64 << 20;

/// A block with a valid header, whose payload is in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedBlock {
    pub(crate) at: u64,
    pub(crate) header: BlockHeader,
}

impl ScannedBlock {
    pub(crate) fn payload_at(&self) -> u64 {
        self.at + BlockHeader::LEN as u64
    }

    pub(crate) fn end(&self) -> u64 {
        self.payload_at().saturating_add(u64::from(self.header.stored_len))
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.at..self.end()
    }
}

/// A part of a file.
#[derive(Debug)]
pub(crate) enum FilePart {
    /// A block.
    Block(ScannedBlock),
    /// Bytes that are no block, before further blocks.
    Damage(Range<u64>),
    /// Bytes that are no block, at the end.
    Tail(Range<u64>),
    /// Blocks of a later version.
    TooNew(Range<u64>),
}

/// Scans a range of a source.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    source: &'a dyn RecordingSource,
    at: u64,
    end: u64,
    look: Window,
    search: Window,
    /// The number of bytes that may still be read to check payloads. It limits the cost of headers that repeatedly claim the same
    /// bytes to a few times the file.
    checks: u64,
    stored: Vec<u8>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a dyn RecordingSource, range: Range<u64>) -> Self {
        let checks = (range.end - range.start).saturating_mul(4).max(MIN_CHECKS);
        let (look, search) = (Window::new(LOOK), Window::new(SEARCH));
        Self { source, at: range.start, end: range.end, look, search, checks, stored: Vec::new() }
    }

    /// Returns the position of the next part.
    pub(crate) const fn position(&self) -> u64 {
        self.at
    }

    /// Returns the next part; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<FilePart>> {
        let at = self.at;
        if at >= self.end {
            return Ok(None);
        }
        match self.header_at(at)? {
            Ok(header) => {
                let block = ScannedBlock { at, header };
                if block.end() <= self.end && self.ends_where_it_says(&block)? {
                    self.at = block.end();
                    return Ok(Some(FilePart::Block(block)));
                }
                self.skip(at, FilePart::Damage)
            }
            Err(BlockError::NewerVersion) => self.skip(at, FilePart::TooNew),
            Err(_) => self.skip(at, FilePart::Damage),
        }
        .map(Some)
    }

    /// Does the same in a growing file: returns `None` also before an incomplete block, and before bytes at the end that are no
    /// block. These are scanned again once there are more.
    pub(crate) fn next_whole(&mut self) -> io::Result<Option<FilePart>> {
        let at = self.at;
        let is_half_written = match self.header_at(at.min(self.end))? {
            Ok(header) => ScannedBlock { at, header }.end() > self.end,
            Err(_) => self.end.saturating_sub(at) < BlockHeader::LEN as u64,
        };
        if is_half_written {
            return Ok(None);
        }
        match self.next()? {
            Some(FilePart::Tail(range)) => {
                self.at = range.start;
                Ok(None)
            }
            part => Ok(part),
        }
    }

    /// Returns the first `len` stored bytes of a block's payload, or all if there are fewer.
    pub(crate) fn start_of(&mut self, block: &ScannedBlock, len: usize) -> io::Result<&[u8]> {
        let len = len.min(block.header.stored_len as usize);
        self.look.get(self.source, block.payload_at(), len)
    }

    /// Returns the stored payload of a block, which is shorter if the file was truncated meanwhile.
    pub(crate) fn stored(&mut self, block: &ScannedBlock) -> io::Result<&[u8]> {
        read_stored(self.source, block, &mut self.stored)?;
        Ok(&self.stored)
    }

    fn ends_where_it_says(&mut self, block: &ScannedBlock) -> io::Result<bool> {
        if block.end() == self.end || begins_block(self.header_at(block.end())?) {
            return Ok(true);
        }
        let Some(left) = self.checks.checked_sub(u64::from(block.header.stored_len)) else { return Ok(true) };
        self.checks = left;
        let header = block.header;
        Ok(header.check(self.stored(block)?).is_ok())
    }

    fn header_at(&mut self, at: u64) -> io::Result<Result<BlockHeader, BlockError>> {
        let bytes = self.look.get(self.source, at, BlockHeader::LEN)?;
        let within = usize::try_from(self.end - at).unwrap_or(usize::MAX);
        Ok(parse(&bytes[..bytes.len().min(within)]))
    }

    /// Continues at the next header after `from`.
    fn skip(&mut self, from: u64, part: impl FnOnce(Range<u64>) -> FilePart) -> io::Result<FilePart> {
        let found = self.find_header(from + 1)?;
        self.at = found.unwrap_or(self.end);
        Ok(match (found, part(from..self.at)) {
            (None, FilePart::Damage(range)) => FilePart::Tail(range),
            (_, part) => part,
        })
    }

    fn find_header(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while at + (BlockHeader::LEN as u64) <= self.end {
            let within = usize::try_from(self.end - at).unwrap_or(usize::MAX);
            let bytes = self.search.get_more(self.source, at, BlockHeader::LEN)?;
            let bytes = &bytes[..bytes.len().min(within)];
            if bytes.len() < BlockHeader::LEN {
                break;
            }
            if let Some(offset) = first_header(bytes) {
                return Ok(Some(at + offset as u64));
            }
            // A header may begin in the last bytes, and end after them.
            at += (bytes.len() - BlockHeader::LEN + 1) as u64;
        }
        Ok(None)
    }
}

/// Reads the stored payload of `block` into `stored`.
pub(crate) fn read_stored(source: &dyn RecordingSource, block: &ScannedBlock, stored: &mut Vec<u8>) -> io::Result<()> {
    stored.resize(block.header.stored_len as usize, 0);
    let read = source.read_at(block.payload_at(), stored)?;
    stored.truncate(read);
    Ok(())
}

/// Returns the offset of the first complete header in `bytes`.
fn first_header(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(BlockHeader::LEN)?;
    let mut from = 0;
    while from <= last {
        let offset = from + bytes[from..=last].iter().position(|byte| *byte == SYNC[0])?;
        if begins_block(parse(&bytes[offset..])) {
            return Some(offset);
        }
        from = offset + 1;
    }
    None
}

/// Returns whether a block of some version begins with this header.
const fn begins_block(header: Result<BlockHeader, BlockError>) -> bool {
    matches!(header, Ok(_) | Err(BlockError::NewerVersion))
}

/// Parses the header at the beginning of `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Result<BlockHeader, BlockError> {
    bytes.first_chunk().ok_or(BlockError::Cut).and_then(BlockHeader::parse)
}
