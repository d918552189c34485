//! What the allocator of a host tells, as it was told.

use stackweave_core::{EventKind, FieldType};
use stackweave_recording::events;
use stackweave_recording::file::{RawEvent, number_of};

/// What an event of a host is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    Allocate,
    Present,
    Free,
    FreeRequested,
    FreeCompleted,
    Segment,
    SegmentPresent,
    SegmentMap,
    SegmentFree,
    SegmentUnmap,
    Snapshot,
    OutOfMemory,
    Annotate,
    /// An account of all that there is begins or ends.
    State,
    SegmentState,
    BlockState,
}

/// An event of a host. What its kind does not have is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) tells: Tells,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) stack: u32,
    pub(crate) device: i64,
    pub(crate) stream: u64,
    pub(crate) pool: u64,
    /// The label of what happens, or of what is said of a block.
    pub(crate) frame: u32,
    /// The bytes of a block that were asked for, or those that a device has free.
    pub(crate) bytes: u64,
    /// Of a segment or a block; of an account whether it begins or ends.
    pub(crate) flags: u64,
}

/// Where the values of a kind of a host are.
#[derive(Debug)]
pub(crate) struct HostKind {
    tells: Tells,
    address: Option<usize>,
    size: Option<usize>,
    stack: Option<usize>,
    device: Option<usize>,
    stream: Option<usize>,
    pool: Option<usize>,
    frame: Option<usize>,
    bytes: Option<usize>,
    flags: Option<usize>,
}

impl HostKind {
    pub(crate) fn of(kind: &EventKind) -> Option<Self> {
        let known = [
            (events::HOST_ALLOCATE, Tells::Allocate),
            (events::HOST_PRESENT, Tells::Present),
            (events::HOST_FREE, Tells::Free),
            (events::HOST_FREE_REQUESTED, Tells::FreeRequested),
            (events::HOST_FREE_COMPLETED, Tells::FreeCompleted),
            (events::SEGMENT, Tells::Segment),
            (events::SEGMENT_PRESENT, Tells::SegmentPresent),
            (events::SEGMENT_MAP, Tells::SegmentMap),
            (events::SEGMENT_FREE, Tells::SegmentFree),
            (events::SEGMENT_UNMAP, Tells::SegmentUnmap),
            (events::HOST_SNAPSHOT, Tells::Snapshot),
            (events::HOST_OUT_OF_MEMORY, Tells::OutOfMemory),
            (events::HOST_ANNOTATE, Tells::Annotate),
            (events::HOST_STATE, Tells::State),
            (events::SEGMENT_STATE, Tells::SegmentState),
            (events::BLOCK_STATE, Tells::BlockState),
        ];
        let is_it = |known: &EventKind| known.name == kind.name && known.role == kind.role;
        let (_, tells) = known.into_iter().find(|(known, _)| is_it(known))?;
        let named = |name: &str| kind.fields.iter().position(|field| field.name == name);
        Some(Self {
            tells,
            address: kind.position_of(FieldType::Address),
            size: named("size"),
            stack: kind.position_of(FieldType::Stack),
            device: named("device"),
            stream: named("stream"),
            pool: named("pool"),
            frame: kind.position_of(FieldType::Frame),
            bytes: named("asked").or_else(|| named("free")),
            flags: named("flags").or_else(|| named("state")),
        })
    }

    pub(crate) fn told(&self, event: &RawEvent<'_>) -> Told {
        let word = |place: Option<usize>| place.and_then(|place| event.words.get(place)).copied();
        let number = |place| word(place).map_or(0, number_of);
        Told {
            tells: self.tells,
            address: word(self.address).unwrap_or(0),
            size: word(self.size).unwrap_or(0),
            stack: number(self.stack),
            device: word(self.device).map_or(EventKind::OWN_DEVICE, u64::cast_signed),
            stream: word(self.stream).unwrap_or(0),
            pool: word(self.pool).unwrap_or(0),
            frame: number(self.frame),
            bytes: word(self.bytes).unwrap_or(0),
            flags: word(self.flags).unwrap_or(0),
        }
    }
}
