//! How blocks are made smaller.

use super::error::BlockError;

/// The most that LZ4 can shrink anything.
pub(super) const MAX_RATIO: u64 = 255;

/// How a block is compressed.
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

/// What is shorter than this is not worth a try.
const LEAST: usize = 64;

/// Appends `bytes` compressed to `out`, if that may be worth it.
pub(super) fn compress(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    if bytes.len() < LEAST {
        return false;
    }
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
    let Ok(len) = lz4_flex::block::compress_into(bytes, &mut out[start..]) else { return false };
    out.truncate(start + len);
    true
}

/// Appends `len` bytes to `out`, which must be what `compressed` holds, no less and no more.
pub(super) fn decompress(compressed: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), BlockError> {
    let start = out.len();
    out.resize(start + len, 0);
    match lz4_flex::block::decompress_into(compressed, &mut out[start..]) {
        Ok(found) if found == len => Ok(()),
        _ => Err(BlockError::BadCompression),
    }
}
