//! The errors of reading a block.

/// The reason why a block, or its content, can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BlockError {
    /// No block begins here.
    #[error("no block begins here")]
    NoMarker,
    /// The header is damaged.
    #[error("the header of a block is damaged")]
    HeaderDamaged,
    /// The header is intact, but of an unknown version.
    #[error("written by a newer version")]
    NewerVersion,
    /// The block is longer than the format allows.
    #[error("a block is longer than allowed")]
    TooLong,
    /// There are fewer bytes than the header says.
    #[error("a block is cut short")]
    Cut,
    /// The bytes do not have the checksum in the header.
    #[error("a block is damaged")]
    Damaged,
    /// The compression method is unknown.
    #[error("a block has an unknown compression")]
    UnknownCodec,
    /// The compressed bytes are invalid, or have another length than the header says.
    #[error("a block does not decompress")]
    BadCompression,
    /// The payload ends in the middle of a value.
    #[error("a block ends early")]
    EndsEarly,
    /// The payload is inconsistent.
    #[error("a block contradicts itself")]
    Contradiction,
    /// The payload claims more than the format allows.
    #[error("a block claims more than the format allows")]
    TooMuch,
}
