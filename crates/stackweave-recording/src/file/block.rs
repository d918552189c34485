//! Blocks: the framing of everything in a file, by a marker, lengths and checksums.

use super::compression::{self, Codec};
use super::error::BlockError;
use super::events_head::EventsHead;

/// The first bytes of each block. Any conversion of the file as text destroys them.
pub const SYNC: [u8; 8] = *b"\xf5SWV\r\n\x1a\n";

/// The version that this code writes.
pub const VERSION: u8 = 1;

/// The maximum length of a payload in bytes.
pub const MAX_PAYLOAD: u32 = 64 << 20;

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// The beginning of a process's recording: a [`ProcessStart`](super::ProcessStart).
    Start,
    /// Definitions that events refer to, for a [`Dictionary`](super::Dictionary).
    Definitions,
    /// Events of one thread, for an [`EventBuffer`](super::EventBuffer).
    Events,
    /// A [`ClockPoint`](super::ClockPoint).
    Clock,
    /// Events that were not recorded: a [`Lost`](super::Lost).
    Lost,
    /// The end of a process's recording: an [`SectionEnd`](super::SectionEnd).
    End,
    /// A kind that this version does not know; readers skip it.
    Other(u8),
}

impl BlockKind {
    /// Returns its number in a file.
    pub const fn number(self) -> u8 {
        match self {
            Self::Start => 1,
            Self::Definitions => 2,
            Self::Events => 3,
            Self::Clock => 4,
            Self::Lost => 5,
            Self::End => 6,
            Self::Other(number) => number,
        }
    }

    /// Returns the kind with this number.
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Start,
            2 => Self::Definitions,
            3 => Self::Events,
            4 => Self::Clock,
            5 => Self::Lost,
            6 => Self::End,
            _ => Self::Other(number),
        }
    }

    /// Returns the length of the uncompressed head of its payload, which can be read without the rest.
    const fn head_len(self) -> usize {
        if matches!(self, Self::Events) { EventsHead::LEN } else { 0 }
    }

    const fn is_compressed(self) -> bool {
        matches!(self, Self::Definitions | Self::Events)
    }

    /// Returns the maximum ratio of the payload's length to its stored length. A dictionary keeps its definitions in memory, so
    /// their ratio is limited below what compression could reach.
    const fn max_ratio(self) -> u64 {
        if matches!(self, Self::Definitions) { 32 } else { compression::MAX_RATIO }
    }
}

/// The header of a block. Its layout is the same in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The content of the block.
    pub kind: BlockKind,
    /// The number of bytes after the header.
    pub stored_len: u32,
    /// Their number after decompression.
    pub full_len: u32,
    /// The section that the block belongs to: the checksum of the payload of the section's Start.
    pub section: u32,
    codec: u8,
    head_len: u8,
    checksum: u32,
}

impl BlockHeader {
    /// Its length in bytes.
    pub const LEN: usize = 32;

    /// Parses a header. If its own checksum is right, its values are right, whatever else is damaged.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, BlockError> {
        if bytes[..8] != SYNC {
            return Err(BlockError::NoMarker);
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if crc32fast::hash(&bytes[..28]) != word(28) {
            return Err(BlockError::HeaderDamaged);
        }
        if bytes[9] != VERSION {
            return Err(BlockError::NewerVersion);
        }
        let header = Self {
            kind: BlockKind::from_number(bytes[8]),
            codec: bytes[10],
            head_len: bytes[11],
            stored_len: word(12),
            full_len: word(16),
            section: word(20),
            checksum: word(24),
        };
        if header.stored_len.max(header.full_len) > MAX_PAYLOAD { Err(BlockError::TooLong) } else { Ok(header) }
    }

    /// Checks that these are the bytes that were written after this header.
    pub fn check(&self, stored: &[u8]) -> Result<(), BlockError> {
        if stored.len() != self.stored_len as usize {
            return Err(BlockError::Cut);
        }
        if crc32fast::hash(stored) == self.checksum { Ok(()) } else { Err(BlockError::Damaged) }
    }

    /// Returns the payload of the stored bytes: checked, and decompressed into `scratch` where necessary.
    pub fn payload<'a>(&self, stored: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], BlockError> {
        self.check(stored)?;
        let full_len = self.full_len as usize;
        match Codec::from_number(self.codec).ok_or(BlockError::UnknownCodec)? {
            Codec::Plain if stored.len() == full_len => Ok(stored),
            Codec::Plain => Err(BlockError::Contradiction),
            Codec::Lz4 => {
                let head_len = usize::from(self.head_len);
                let (head, compressed) = stored.split_at_checked(head_len).ok_or(BlockError::Contradiction)?;
                let len = full_len.checked_sub(head_len).ok_or(BlockError::Contradiction)?;
                if u64::from(self.full_len) > u64::from(self.stored_len) * self.kind.max_ratio() {
                    return Err(BlockError::TooMuch);
                }
                scratch.clear();
                scratch.extend_from_slice(head);
                compression::decompress(compressed, len, scratch)?;
                Ok(scratch)
            }
        }
    }

    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&SYNC);
        bytes[8..12].copy_from_slice(&[self.kind.number(), VERSION, self.codec, self.head_len]);
        for (at, word) in [(12, self.stored_len), (16, self.full_len), (20, self.section), (24, self.checksum)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let own = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&own.to_le_bytes());
        bytes
    }
}

/// Appends a whole block. It is compressed if that makes it shorter.
pub fn write_block(kind: BlockKind, section: u32, payload: &[u8], out: &mut Vec<u8>) -> Result<(), BlockError> {
    let full_len = u32::try_from(payload.len()).ok().filter(|len| *len <= MAX_PAYLOAD).ok_or(BlockError::TooLong)?;
    let start = out.len();
    out.extend_from_slice(&[0; BlockHeader::LEN]);
    let (head, body) = payload.split_at(kind.head_len().min(payload.len()));
    let mut codec = Codec::Lz4;
    let shrunk = kind.is_compressed() && {
        out.extend_from_slice(head);
        let least = u64::from(full_len).div_ceil(kind.max_ratio());
        compression::compress(body, out)
            && (least..u64::from(full_len)).contains(&((out.len() - start - BlockHeader::LEN) as u64))
    };
    if !shrunk {
        codec = Codec::Plain;
        out.truncate(start + BlockHeader::LEN);
        out.extend_from_slice(payload);
    }
    let stored = &out[start + BlockHeader::LEN..];
    let header = BlockHeader {
        kind,
        stored_len: u32::try_from(stored.len()).map_err(|_| BlockError::TooLong)?,
        full_len,
        section,
        codec: codec.number(),
        head_len: if codec == Codec::Plain { 0 } else { u8::try_from(head.len()).unwrap_or(0) },
        checksum: crc32fast::hash(stored),
    };
    out[start..start + BlockHeader::LEN].copy_from_slice(&header.to_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: BlockKind, payload: &[u8]) -> (BlockHeader, Vec<u8>) {
        let mut out = Vec::new();
        write_block(kind, 0xabcd, payload, &mut out).unwrap();
        let (header, stored) = out.split_first_chunk().unwrap();
        (BlockHeader::parse(header).unwrap(), stored.to_vec())
    }

    #[test]
    fn payloads_round_trip() {
        let noise: Vec<u8> = (0..5000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        for kind in (0..=255).map(BlockKind::from_number) {
            for payload in [&[][..], b"short", &[7; 200], &noise] {
                let (header, stored) = written(kind, payload);
                assert_eq!((header.kind, header.section, header.full_len as usize), (kind, 0xabcd, payload.len()));
                assert_eq!(header.payload(&stored, &mut vec![1, 2, 3]), Ok(payload));
                assert!(stored.len() <= payload.len());
            }
        }
    }

    #[test]
    fn the_head_of_events_is_read_without_decompressing() {
        let head = EventsHead { thread: 3, count: 4, first_ticks: 5, last_ticks: 1 << 40 };
        let mut payload = Vec::new();
        head.write(&mut payload);
        payload.extend([9; 1000]);
        let (header, stored) = written(BlockKind::Events, &payload);
        assert!(header.stored_len < 100);
        assert_eq!((EventsHead::parse(&stored), EventsHead::parse(&payload)), (Ok(head), Ok(head)));
    }

    #[test]
    fn changed_bytes_are_rejected() {
        let (header, mut stored) = written(BlockKind::Events, &[9; 1000]);
        assert_eq!(header.check(&stored), Ok(()));
        assert_eq!(header.check(&stored[1..]), Err(BlockError::Cut));
        stored[0] ^= 1;
        assert_eq!(header.payload(&stored, &mut Vec::new()), Err(BlockError::Damaged));
    }

    #[test]
    fn a_payload_that_is_too_long_is_not_written() {
        let mut out = vec![1];
        let payload = vec![0; MAX_PAYLOAD as usize + 1];
        assert_eq!(write_block(BlockKind::Start, 0, &payload, &mut out), Err(BlockError::TooLong));
        assert_eq!(out, [1]);
    }
}
