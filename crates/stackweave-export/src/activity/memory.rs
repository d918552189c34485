//! What events about memory say.

use stackweave_core::EventKind;

/// What memory is to whoever takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Held {
    /// A block, of this device.
    Block(i64),
    /// Addresses of the process.
    Mapping,
    /// Room for blocks of this device, which is not counted.
    Segment(i64),
}

impl Held {
    /// Whose memory it is.
    pub(crate) const fn device(self) -> i64 {
        match self {
            Self::Block(device) | Self::Segment(device) => device,
            Self::Mapping => EventKind::OWN_DEVICE,
        }
    }

    /// Whether it is a range of addresses, which may be given back in parts.
    pub(crate) const fn is_range(self) -> bool {
        !matches!(self, Self::Block(_))
    }
}

/// Memory that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// 0 if it was not recorded.
    pub(crate) stack: u32,
    /// The frame of the tag that the thread had; 0 if it had none.
    pub(crate) tag: u32,
    pub(crate) held: Held,
    pub(crate) stream: u64,
    pub(crate) pool: u64,
}

/// Memory that is given back. Of most blocks the size is not said: it is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// 0 if it was not recorded.
    pub(crate) stack: u32,
    pub(crate) held: Held,
}
