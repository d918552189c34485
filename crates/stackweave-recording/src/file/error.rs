//! Why a block can't be read.

use core::fmt;

/// Why a block, or what it holds, can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockError {
    /// No block begins here.
    NoMarker,
    /// The header is damaged.
    HeaderDamaged,
    /// The header is whole, and of a version that is not known here.
    NewerVersion,
    /// Longer than any block may be.
    TooLong,
    /// There are not as many bytes as the header says.
    Cut,
    /// The bytes are not those that were written.
    Damaged,
    /// Compressed in a way that is not known here.
    UnknownCodec,
    /// What was compressed does not come out as the header says.
    BadCompression,
    /// The payload ends in the middle of something.
    EndsEarly,
    /// The payload says something that can't be.
    Contradiction,
    /// The payload says that it holds more than there may be.
    TooMuch,
}

impl BlockError {
    /// The reason in a few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoMarker => "no block begins here",
            Self::HeaderDamaged => "the header of a block is damaged",
            Self::NewerVersion => "written by a newer version",
            Self::TooLong => "a block is longer than allowed",
            Self::Cut => "a block is cut short",
            Self::Damaged => "a block is damaged",
            Self::UnknownCodec => "compressed in an unknown way",
            Self::BadCompression => "a block does not decompress",
            Self::EndsEarly => "a block ends early",
            Self::Contradiction => "a block contradicts itself",
            Self::TooMuch => "a block says that it holds too much",
        }
    }
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for BlockError {}
