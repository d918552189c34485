//! Which words of an event say what about memory, by its kind.

use stackweave_core::{EventKind, FieldType, Role};
use stackweave_recording::file::{Dictionary, RawEvent, number_of};

/// What to do with the events of each kind, by number.
#[derive(Debug)]
pub struct MemoryKinds(Box<[Kind; 256]>);

/// What an event says about memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEvent {
    /// A block is taken.
    Allocate(Taken),
    /// A block is given back.
    Free {
        /// Whose memory it is.
        device: i64,
        /// Where it begins.
        address: u64,
    },
    /// A range of addresses is taken.
    Map(Taken),
    /// A range is given back, or a part of one, or several.
    Unmap {
        /// Where it begins.
        address: u64,
        /// How many bytes.
        size: u64,
    },
    /// What the thread gave back last it still has.
    Keep {
        /// Where it begins.
        address: u64,
    },
    /// The thread has this tag from now on.
    Tag {
        /// The number of its frame; 0 for none.
        frame: u32,
    },
}

impl MemoryEvent {
    /// Whose memory it is about; what is not of a device is the process's own.
    pub const fn device(&self) -> i64 {
        match self {
            Self::Allocate(taken) | Self::Map(taken) => taken.device,
            Self::Free { device, .. } => *device,
            Self::Unmap { .. } | Self::Keep { .. } | Self::Tag { .. } => EventKind::OWN_DEVICE,
        }
    }
}

/// What is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Whose memory it is; [`EventKind::OWN_DEVICE`] if it is the process's.
    pub device: i64,
    /// Where it begins.
    pub address: u64,
    /// How many bytes.
    pub size: u64,
    /// The number of the stack; 0 if none was recorded.
    pub stack: u32,
    /// The number of the event's kind, which is called as the allocator.
    pub kind: u8,
}

/// Where its values are; a place behind all words if it has none.
#[derive(Clone, Copy, Debug)]
struct Kind {
    role: Option<Role>,
    address: u8,
    size: u8,
    stack: u8,
    frame: u8,
    device: u8,
    is_present: bool,
}

/// The kind of blocks that were there when the recording began: nobody leaks them.
pub(super) const PRESENT: &str = "host-present";

const NOWHERE: u8 = u8::MAX;

impl MemoryKinds {
    /// The kinds of a section.
    pub fn of(dictionary: &Dictionary) -> Self {
        let none = Kind {
            role: None,
            address: NOWHERE,
            size: NOWHERE,
            stack: NOWHERE,
            frame: NOWHERE,
            device: NOWHERE,
            is_present: false,
        };
        let mut kinds = Box::new([none; 256]);
        for (number, kind) in dictionary.kinds() {
            kinds[usize::from(number)] = Kind::of(kind);
        }
        Self(kinds)
    }

    /// Whether any of the kinds takes memory.
    pub fn are_there(&self) -> bool {
        self.0.iter().any(|kind| matches!(kind.role, Some(Role::Allocate | Role::Map)))
    }

    /// Whether events of this kind tell of blocks that were there when the recording began.
    pub(super) fn is_present(&self, kind: u32) -> bool {
        self.0.get(kind as usize).is_some_and(|kind| kind.is_present)
    }

    /// What an event of that section says about memory; `None` if it says nothing.
    pub fn see(&self, event: &RawEvent<'_>) -> Option<MemoryEvent> {
        let kind = self.0[usize::from(event.kind)];
        let word = |place: u8| event.words.get(usize::from(place)).copied().unwrap_or(0);
        let number = |place: u8| number_of(word(place));
        let address = word(kind.address);
        let device = if kind.device == NOWHERE { EventKind::OWN_DEVICE } else { word(kind.device).cast_signed() };
        let taken = || Taken { device, address, size: word(kind.size), stack: number(kind.stack), kind: event.kind };
        match kind.role? {
            Role::Allocate => Some(MemoryEvent::Allocate(taken())),
            Role::Free => Some(MemoryEvent::Free { device, address }),
            Role::Map => Some(MemoryEvent::Map(taken())),
            Role::Unmap => Some(MemoryEvent::Unmap { address, size: word(kind.size) }),
            Role::Keep => Some(MemoryEvent::Keep { address }),
            Role::Tag => Some(MemoryEvent::Tag { frame: number(kind.frame) }),
            _ => None,
        }
    }
}

impl Kind {
    fn of(kind: &EventKind) -> Self {
        let place = |of| kind.position_of(of).and_then(|place| u8::try_from(place).ok()).unwrap_or(NOWHERE);
        let is_device = |field: &stackweave_core::Field| field.name == "device" && field.of == FieldType::Signed;
        let device = kind.fields.iter().position(is_device).and_then(|place| u8::try_from(place).ok());
        // Room that a host has for its blocks is not counted: the blocks are.
        let is_room = device.is_some() && matches!(kind.role, Role::Map | Role::Unmap);
        Self {
            role: (!is_room).then_some(kind.role),
            address: place(FieldType::Address),
            size: place(FieldType::Unsigned),
            stack: place(FieldType::Stack),
            frame: place(FieldType::Frame),
            device: device.unwrap_or(NOWHERE),
            is_present: kind.name == PRESENT,
        }
    }
}
