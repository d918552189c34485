//! The memory that an event allocates or frees.

use stackweave_core::{EventKind, Role};

use super::HostAction;
use super::layout::EventLayout;
use crate::file::RawEvent;

/// An event that allocates or frees memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// The kind of memory, and its device.
    pub region: Region,
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes; 0 for most frees of blocks.
    pub size: u64,
    /// The number of the stack; 0 if none was recorded.
    pub stack: u32,
    /// The number of the event's kind, which is named after the allocator.
    pub kind: u8,
    /// The action of a host allocator, if it is one.
    pub host: Option<HostAction>,
    /// The stream that uses it.
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
    /// A segment of this device. It contains blocks, and is not counted itself.
    Segment(i64),
}

impl Region {
    /// Returns its device.
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

impl MemoryEvent {
    /// Returns an event with these values and zeros for the others.
    pub const fn new(region: Region, address: u64, size: u64) -> Self {
        Self { region, address, size, stack: 0, kind: 0, host: None, stream: 0, pool: 0 }
    }

    #[inline]
    pub(super) fn decode(layout: &EventLayout, host: Option<HostAction>, event: &RawEvent<'_>) -> Self {
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
