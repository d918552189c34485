//! The jitdump format: a header, then records that begin with their kind and size.
//!
//! It is described in the Linux kernel's `tools/perf/Documentation/jitdump-specification.txt`.

pub(super) const HEADER_SIZE: usize = 40;
pub(super) const RECORD_HEAD_SIZE: usize = 16;

const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
/// Represents the file name of the previous entry.
const SAME_FILE: &[u8] = b"\xff";

/// The reason why a jitdump is not read, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JitDumpFault {
    /// It does not begin with a jitdump's magic number.
    #[error("not a jitdump: wrong magic number")]
    NotJitDump,
    /// It was written with a different byte order.
    #[error("foreign byte order in jitdump")]
    OtherByteOrder,
    /// Its version is unknown.
    #[error("unknown version {0} of jitdump")]
    UnknownVersion(u32),
    /// A record states a size that is too small.
    #[error("malformed record in jitdump")]
    BadRecord,
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Load,
    Move,
    DebugInfo,
    Close,
    /// Unwinding information, or a kind that is unknown here.
    Other,
}

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) kind: RecordKind,
    /// The size including the head.
    pub(super) size: u32,
}

/// Code that was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LoadRecord<'a> {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: &'a [u8],
}

/// Code that was moved.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MoveRecord {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) size: u64,
}

/// An entry of a debug information record: the line of the code from `address` to the next entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DebugEntry<'a> {
    pub(super) address: u64,
    pub(super) line: u32,
    pub(super) file: &'a [u8],
}

/// Returns the offset of the first record.
pub(super) fn parse_header(bytes: &[u8; HEADER_SIZE]) -> Result<u64, JitDumpFault> {
    let mut fields = Fields(bytes);
    let (magic, version, size) = (fields.u32(), fields.u32(), fields.u32());
    match (magic, version, size) {
        (Some(MAGIC), Some(VERSION), Some(size)) if size as usize >= HEADER_SIZE => Ok(size.into()),
        (Some(MAGIC), Some(VERSION), _) => Err(JitDumpFault::BadRecord),
        (Some(MAGIC), Some(version), _) => Err(JitDumpFault::UnknownVersion(version)),
        (Some(magic), ..) if magic == MAGIC.swap_bytes() => Err(JitDumpFault::OtherByteOrder),
        _ => Err(JitDumpFault::NotJitDump),
    }
}

pub(super) fn parse_head(bytes: &[u8; RECORD_HEAD_SIZE]) -> Result<RecordHead, JitDumpFault> {
    let mut fields = Fields(bytes);
    let kind = match fields.u32() {
        Some(0) => RecordKind::Load,
        Some(1) => RecordKind::Move,
        Some(2) => RecordKind::DebugInfo,
        Some(3) => RecordKind::Close,
        _ => RecordKind::Other,
    };
    let size = fields.u32().filter(|&size| size as usize >= RECORD_HEAD_SIZE).ok_or(JitDumpFault::BadRecord)?;
    Ok(RecordHead { kind, size })
}

/// Parses the body of a load record, at least up to the end of its name.
pub(super) fn parse_load(body: &[u8]) -> Option<LoadRecord<'_>> {
    let mut fields = Fields(body);
    let (_pid, _tid, _vma) = (fields.u32()?, fields.u32()?, fields.u64()?);
    let (start, size, _index) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let name = fields.text()?;
    (size > 0).then_some(LoadRecord { start, end: start.checked_add(size)?, name })
}

pub(super) fn parse_move(body: &[u8]) -> Option<MoveRecord> {
    let mut fields = Fields(body);
    let (_pid, _tid, _vma) = (fields.u32()?, fields.u32()?, fields.u64()?);
    let (from, to, size) = (fields.u64()?, fields.u64()?, fields.u64()?);
    (size > 0 && from.checked_add(size).is_some() && to.checked_add(size).is_some()).then_some(MoveRecord {
        from,
        to,
        size,
    })
}

/// Parses a debug information record: the start of its code, and its entries.
pub(super) fn parse_debug_info(body: &[u8]) -> Option<(u64, Vec<DebugEntry<'_>>)> {
    let mut fields = Fields(body);
    let (start, count) = (fields.u64()?, fields.u64()?);
    let mut entries: Vec<DebugEntry<'_>> = Vec::new();
    for _ in 0..count {
        let (address, line, _discriminator) = (fields.u64()?, fields.u32()?, fields.u32()?);
        let mut file = fields.text()?;
        if file == SAME_FILE {
            file = entries.last()?.file;
        }
        entries.push(DebugEntry { address, line, file });
    }
    Some((start, entries))
}

/// Bytes that have not been parsed yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*bytes))
    }

    /// Returns the text up to its terminator.
    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(text)
    }
}
