//! Why a block can't be read.

/// Why a block, or what it holds, can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BlockError {
    /// No block begins here.
    #[error("no block begins here")]
    NoMarker,
    /// The header is damaged.
    #[error("the header of a block is damaged")]
    HeaderDamaged,
    /// The header is whole, and of a version that is not known here.
    #[error("written by a newer version")]
    NewerVersion,
    /// Longer than any block may be.
    #[error("a block is longer than allowed")]
    TooLong,
    /// There are not as many bytes as the header says.
    #[error("a block is cut short")]
    Cut,
    /// The bytes are not those that were written.
    #[error("a block is damaged")]
    Damaged,
    /// Compressed in a way that is not known here.
    #[error("compressed in an unknown way")]
    UnknownCodec,
    /// What was compressed does not come out as the header says.
    #[error("a block does not decompress")]
    BadCompression,
    /// The payload ends in the middle of something.
    #[error("a block ends early")]
    EndsEarly,
    /// The payload says something that can't be.
    #[error("a block contradicts itself")]
    Contradiction,
    /// The payload says that it holds more than there may be.
    #[error("a block says that it holds too much")]
    TooMuch,
}
