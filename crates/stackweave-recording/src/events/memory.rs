//! The memory that an event is about, whether it is allocated or freed.

use stackweave_core::{EventKind, Role};

use super::HostAction;
use super::layout::Layout;
use crate::file::RawEvent;

/// Memory that is allocated or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What kind of memory it is, and of which device.
    pub region: Region,
    /// Where it begins.
    pub address: u64,
    /// How many bytes; 0 for most blocks that are freed.
    pub size: u64,
    /// The number of the stack; 0 if none was recorded.
    pub stack: u32,
    /// The number of the event's kind, which is called as the allocator.
    pub kind: u8,
    /// What the allocator of a host does, if it is one of those.
    pub host: Option<HostAction>,
    /// The stream that it is used on.
    pub stream: u64,
    /// The pool that it belongs to.
    pub pool: u64,
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// A block of this device.
    Block(i64),
    /// Addresses of the process, which may be unmapped in parts.
    Mapping,
    /// A segment of this device, in which blocks lie: it is not counted.
    Segment(i64),
}

impl Region {
    /// Returns the device that it is of.
    pub const fn device(self) -> i64 {
        match self {
            Self::Block(device) | Self::Segment(device) => device,
            Self::Mapping => EventKind::OWN_DEVICE,
        }
    }

    /// Returns whether it is a range of addresses, which may be freed in parts.
    pub const fn is_range(self) -> bool {
        !matches!(self, Self::Block(_))
    }
}

impl Memory {
    /// Returns memory of which only this is known.
    pub const fn new(region: Region, address: u64, size: u64) -> Self {
        Self { region, address, size, stack: 0, kind: 0, host: None, stream: 0, pool: 0 }
    }

    #[inline]
    pub(super) fn decode(layout: &Layout, host: Option<HostAction>, event: &RawEvent<'_>) -> Self {
        let words = event.words;
        let device = layout.device.get(words).map(u64::cast_signed);
        let region = match (layout.role, device) {
            (Role::Map | Role::Unmap, Some(device)) => Region::Segment(device),
            (Role::Map | Role::Unmap, None) => Region::Mapping,
            (_, device) => Region::Block(device.unwrap_or(EventKind::OWN_DEVICE)),
        };
        Self {
            region,
            address: layout.address.word(words),
            size: layout.value.word(words),
            stack: layout.stack.number(words),
            kind: event.kind,
            host,
            stream: layout.stream.word(words),
            pool: layout.pool.word(words),
        }
    }
}
