//! Which words of an event say what about the memory of a device, by its kind.

use stackweave_core::{EventKind, Field, FieldType, Role};
use stackweave_recording::events;
use stackweave_recording::file::{Dictionary, RawEvent, number_of};

/// What to do with the events of each kind, by number.
#[derive(Debug)]
pub(super) struct DeviceKinds(Box<[Option<Kind>; 256]>);

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceEvent {
    /// A block is taken.
    Take(Room),
    /// A block is given back; what it was may not be given out again before that is completed, if it `waits`.
    Free {
        device: i64,
        address: u64,
        waits: bool,
    },
    /// What was given back may be given out again.
    Complete {
        device: i64,
        address: u64,
    },
    /// The allocator gets room.
    Reserve(Room),
    /// It gives room back: a part of what it got, or several; all that it got at that address, if no size is said.
    Release {
        device: i64,
        address: u64,
        size: u64,
    },
    /// There was no room for so many bytes.
    OutOfMemory {
        device: i64,
        size: u64,
        free: u64,
        stack: u32,
        pool: u64,
    },
    /// An account of the allocator's own begins, or ends.
    AccountBegins {
        reason: u64,
    },
    AccountEnds,
    /// Rows of it.
    Segment(Room),
    Block {
        room: Room,
        asked: u64,
        is_allocated: bool,
        is_active: bool,
    },
}

/// A block, or a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) device: i64,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) pool: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Take,
    Free { waits: bool },
    Complete,
    Reserve,
    Release,
    OutOfMemory,
    Account,
    Segment,
    Block,
}

/// Where its values are; a place behind all words if it has none.
#[derive(Clone, Copy, Debug)]
struct Kind {
    what: What,
    address: u8,
    size: u8,
    stack: u8,
    device: u8,
    pool: u8,
    free: u8,
    asked: u8,
    flags: u8,
    state: u8,
    reason: u8,
}

const NOWHERE: u8 = u8::MAX;

impl DeviceKinds {
    /// The kinds of a section; `None` if none of them is about a device.
    pub(super) fn of(dictionary: &Dictionary) -> Option<Self> {
        let mut kinds = Box::new([None; 256]);
        for (number, kind) in dictionary.kinds() {
            kinds[usize::from(number)] = Kind::of(kind);
        }
        kinds.iter().any(Option::is_some).then_some(Self(kinds))
    }

    /// What an event of that section says; `None` if it is not about a device.
    pub(super) fn see(&self, event: &RawEvent<'_>) -> Option<DeviceEvent> {
        let kind = self.0[usize::from(event.kind)]?;
        let word = |place: u8| event.words.get(usize::from(place)).copied().unwrap_or(0);
        let (address, size, pool) = (word(kind.address), word(kind.size), word(kind.pool));
        let device = word(kind.device).cast_signed();
        if kind.what != What::Account && device == EventKind::OWN_DEVICE {
            return None;
        }
        let room = Room { device, address, size, pool };
        Some(match kind.what {
            What::Take => DeviceEvent::Take(room),
            What::Free { waits } => DeviceEvent::Free { device, address, waits },
            What::Complete => DeviceEvent::Complete { device, address },
            What::Reserve => DeviceEvent::Reserve(room),
            What::Release => DeviceEvent::Release { device, address, size },
            What::OutOfMemory => {
                let stack = number_of(word(kind.stack));
                DeviceEvent::OutOfMemory { device, size, free: word(kind.free), stack, pool }
            }
            What::Account => match word(kind.state) {
                events::ACCOUNT_BEGINS => DeviceEvent::AccountBegins { reason: word(kind.reason) },
                events::ACCOUNT_ENDS => DeviceEvent::AccountEnds,
                _ => return None,
            },
            What::Segment => DeviceEvent::Segment(room),
            What::Block => {
                let flags = word(kind.flags);
                let is = |flag: u64| flags & flag != 0;
                let (is_allocated, is_active) = (is(events::BLOCK_IS_ALLOCATED), is(events::BLOCK_IS_ACTIVE));
                DeviceEvent::Block { room, asked: word(kind.asked), is_allocated, is_active }
            }
        })
    }
}

impl Kind {
    fn of(kind: &EventKind) -> Option<Self> {
        let place = |is_it: &dyn Fn(&Field) -> bool| {
            kind.fields.iter().position(is_it).and_then(|place| u8::try_from(place).ok()).unwrap_or(NOWHERE)
        };
        let first = |of: FieldType| place(&|field| field.of == of);
        let number = |name: &str| place(&|field| field.name == name && field.of == FieldType::Unsigned);
        let device = place(&|field| field.name == "device" && field.of == FieldType::Signed);
        let what = match (&*kind.name, kind.role) {
            ("host-state", _) => What::Account,
            _ if device == NOWHERE => return None,
            ("host-free-requested", _) => What::Free { waits: true },
            ("host-free-completed", _) => What::Complete,
            ("host-out-of-memory", _) => What::OutOfMemory,
            ("segment-state", _) => What::Segment,
            ("block-state", _) => What::Block,
            (_, Role::Allocate) => What::Take,
            (_, Role::Free) => What::Free { waits: false },
            (_, Role::Map) => What::Reserve,
            (_, Role::Unmap) => What::Release,
            _ => return None,
        };
        Some(Self {
            what,
            address: first(FieldType::Address),
            size: number("size"),
            stack: first(FieldType::Stack),
            device,
            pool: number("pool"),
            free: number("free"),
            asked: number("asked"),
            flags: number("flags"),
            state: number("state"),
            reason: number("reason"),
        })
    }
}
