//! The blocks of a file, one after another, and the places between them that hold none.
//!
//! A block's header vouches for its length, so payloads are stepped over unread. Where no header is found at
//! the end of a block, one of two things has happened: what comes next is damaged, or the block is shorter than it says,
//! because its writer was stopped and somebody wrote on behind it. The checksum of its payload tells, and the
//! search for the next header begins behind the block or inside it.

use std::io;
use std::ops::Range;

use super::source::Source;
use super::window::Window;
use crate::file::{BlockError, BlockHeader, SYNC};

/// How much is read at once to look at a header and at what stands behind it.
const LOOK: usize = 256;
/// How much is read at once in search of a header.
const SEARCH: usize = 64 << 10;

/// How many bytes may be read to check payloads in any file, however short.
const LEAST_CHECKS: u64 = 64 << 20;

/// A block whose header holds, and whose payload lies in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) at: u64,
    pub(crate) header: BlockHeader,
}

impl Block {
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

/// What comes next in a file.
#[derive(Debug)]
pub(crate) enum Piece {
    /// A block.
    Block(Block),
    /// Bytes that are no block, with blocks behind them.
    Damage(Range<u64>),
    /// Bytes that are no block, up to the end.
    Tail(Range<u64>),
    /// Blocks of a version that came after this one.
    TooNew(Range<u64>),
}

/// Goes through a part of a source.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    source: &'a dyn Source,
    at: u64,
    end: u64,
    look: Window,
    search: Window,
    /// How many bytes may still be read to check payloads, so that headers which claim the same bytes over and over
    /// cost no more than a few times the file.
    checks: u64,
    stored: Vec<u8>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a dyn Source, range: Range<u64>) -> Self {
        let checks = (range.end - range.start).saturating_mul(4).max(LEAST_CHECKS);
        let (look, search) = (Window::new(LOOK), Window::new(SEARCH));
        Self { source, at: range.start, end: range.end, look, search, checks, stored: Vec::new() }
    }

    /// Where the next piece begins.
    pub(crate) const fn position(&self) -> u64 {
        self.at
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Piece>> {
        let at = self.at;
        if at >= self.end {
            return Ok(None);
        }
        match self.header_at(at)? {
            Ok(header) => {
                let block = Block { at, header };
                if block.end() <= self.end && self.ends_where_it_says(&block)? {
                    self.at = block.end();
                    return Ok(Some(Piece::Block(block)));
                }
                self.skip(at, Piece::Damage)
            }
            Err(BlockError::NewerVersion) => self.skip(at, Piece::TooNew),
            Err(_) => self.skip(at, Piece::Damage),
        }
        .map(Some)
    }

    /// The same in a file that grows: `None` also before a block of which only a part is there, and before bytes at the end
    /// that are no block. They are looked at again, once there are more.
    pub(crate) fn next_whole(&mut self) -> io::Result<Option<Piece>> {
        let at = self.at;
        let is_half_written = match self.header_at(at.min(self.end))? {
            Ok(header) => Block { at, header }.end() > self.end,
            Err(_) => self.end.saturating_sub(at) < BlockHeader::LEN as u64,
        };
        if is_half_written {
            return Ok(None);
        }
        match self.next()? {
            Some(Piece::Tail(range)) => {
                self.at = range.start;
                Ok(None)
            }
            piece => Ok(piece),
        }
    }

    /// The first bytes of a block's payload as they are stored, `len` of them or as many as there are.
    pub(crate) fn start_of(&mut self, block: &Block, len: usize) -> io::Result<&[u8]> {
        let len = len.min(block.header.stored_len as usize);
        self.look.get(self.source, block.payload_at(), len)
    }

    /// A block's payload as it is stored, all of it; shorter if the file was cut meanwhile.
    pub(crate) fn stored(&mut self, block: &Block) -> io::Result<&[u8]> {
        read_stored(self.source, block, &mut self.stored)?;
        Ok(&self.stored)
    }

    fn ends_where_it_says(&mut self, block: &Block) -> io::Result<bool> {
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

    /// Goes on at the next header behind `from`.
    fn skip(&mut self, from: u64, piece: impl FnOnce(Range<u64>) -> Piece) -> io::Result<Piece> {
        let found = self.find_header(from + 1)?;
        self.at = found.unwrap_or(self.end);
        Ok(match (found, piece(from..self.at)) {
            (None, Piece::Damage(range)) => Piece::Tail(range),
            (_, piece) => piece,
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
            if let Some(place) = first_header(bytes) {
                return Ok(Some(at + place as u64));
            }
            // A header may begin in the last bytes, and end behind them.
            at += (bytes.len() - BlockHeader::LEN + 1) as u64;
        }
        Ok(None)
    }
}

/// Reads the stored payload of `block` into `stored`.
pub(crate) fn read_stored(source: &dyn Source, block: &Block, stored: &mut Vec<u8>) -> io::Result<()> {
    stored.resize(block.header.stored_len as usize, 0);
    let read = source.read_at(block.payload_at(), stored)?;
    stored.truncate(read);
    Ok(())
}

/// Where the first header begins that lies in `bytes` as a whole.
fn first_header(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(BlockHeader::LEN)?;
    let mut from = 0;
    while from <= last {
        let place = from + bytes[from..=last].iter().position(|byte| *byte == SYNC[0])?;
        if begins_block(parse(&bytes[place..])) {
            return Some(place);
        }
        from = place + 1;
    }
    None
}

/// Whether a block of some version begins where this was read.
const fn begins_block(header: Result<BlockHeader, BlockError>) -> bool {
    matches!(header, Ok(_) | Err(BlockError::NewerVersion))
}

/// The header that `bytes` begin with.
pub(crate) fn parse(bytes: &[u8]) -> Result<BlockHeader, BlockError> {
    bytes.first_chunk().ok_or(BlockError::Cut).and_then(BlockHeader::parse)
}
