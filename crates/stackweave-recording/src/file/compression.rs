//! The compression of blocks.

use super::error::BlockError;

/// The maximum compression ratio of LZ4.
pub(super) const MAX_RATIO: u64 = 255;

/// The compression of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Lz4,
}

impl Codec {
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Lz4 => 1,
        }
    }

    pub(super) const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Plain),
            1 => Some(Self::Lz4),
            _ => None,
        }
    }
}

/// Shorter payloads are not compressed.
const MIN_LEN: usize = 64;

/// Appends `bytes` compressed to `out`. Returns `false` if they are too short for that.
pub(super) fn compress(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    if bytes.len() < MIN_LEN {
        return false;
    }
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
    let Ok(len) = lz4_flex::block::compress_into(bytes, &mut out[start..]) else { return false };
    out.truncate(start + len);
    true
}

/// Decompresses `compressed` and appends the result to `out`. Fails unless the result has exactly `len` bytes.
pub(super) fn decompress(compressed: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), BlockError> {
    let start = out.len();
    out.resize(start + len, 0);
    match lz4_flex::block::decompress_into(compressed, &mut out[start..]) {
        Ok(found) if found == len => Ok(()),
        _ => Err(BlockError::BadCompression),
    }
}
