//! Memory that the allocator of a host manages, as a tensor library manages the memory of a GPU.
//!
//! Segments contain a host's blocks. Only blocks are counted.

use stackweave_core::{EventKind, Field};

use super::declare::family;
use super::fields::{DEVICE, FLAGS, POOL, REASON, REQUESTED, SIZE, STATE, STREAM};
use super::layout::{EventLayout, Form, is_called_as};

/// The bit of a pool number that marks the pool of a captured graph; the other bits are the graph's number.
pub const POOL_OF_GRAPH: u64 = 1 << 63;
/// The value of the field `state` at the start of a state listing.
pub const STATE_BEGINS: u64 = 1;
/// The value of the field `state` at the end of a state listing.
pub const STATE_ENDS: u64 = 2;
/// The flag of a segment for large blocks.
pub const SEGMENT_IS_LARGE: u64 = 1;
/// The flag of a segment that may grow.
pub const SEGMENT_GROWS: u64 = 2;
/// The flag of a block that the program has allocated.
pub const BLOCK_IS_ALLOCATED: u64 = 1;
/// The flag of a block that the program or a device uses.
pub const BLOCK_IS_ACTIVE: u64 = 2;

family! { "Device memory" {
    /// A block is allocated; the size is what was requested.
    HOST_ALLOCATE = "host-allocate": Allocate(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The block was in use when the recording began; its stack is a label that marks it as such.
    HOST_PRESENT = "host-present": Allocate(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The block is freed, and its memory may be allocated again at once.
    HOST_FREE = "host-free": Free(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The program frees the block; a device may still use it.
    HOST_FREE_REQUESTED = "host-free-requested": Free(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The device no longer uses the block, so its memory may be allocated again.
    HOST_FREE_COMPLETED = "host-free-completed": Complete(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// A segment is reserved. Blocks are counted, segments are not.
    SEGMENT = "segment": Map(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The segment existed when the recording began.
    SEGMENT_PRESENT = "segment-present": Map(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// Memory is mapped to a part of a segment that grows.
    SEGMENT_MAP = "segment-map": Map(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// A segment is released, or a part of one, or several.
    SEGMENT_FREE = "segment-free": Unmap(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// Memory is unmapped from a part of a segment that grows.
    SEGMENT_UNMAP = "segment-unmap": Unmap(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The program requested a snapshot of the host allocator; the size is what is in use.
    HOST_SNAPSHOT = "host-snapshot": Instant(FRAME, SIZE, STACK, DEVICE);
    /// The host has no memory for a request of this size.
    HOST_OUT_OF_MEMORY = "host-out-of-memory": Instant(FRAME, SIZE, STACK, DEVICE, STREAM, POOL, FREE_BYTES);
    /// The program annotates a block; the frame is a label with the text.
    HOST_ANNOTATE = "host-annotate": Instant(FRAME, ADDRESS, STACK, DEVICE);
    /// A listing of all segments and blocks begins or ends. Its rows are between the two events, on one thread.
    HOST_STATE = "host-state": State(STATE, REASON);
    /// A segment in a listing.
    SEGMENT_STATE = "segment-state": State(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL, FLAGS);
    /// A block in a listing, after its segment, with its real size.
    BLOCK_STATE = "block-state": State(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL, REQUESTED, FLAGS);
} }

/// An action of a host allocator on a block or a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named as its kind, which has the description")]
pub enum HostAction {
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
}

impl HostAction {
    pub(super) fn of(kind: &EventKind) -> Option<Self> {
        let known = [
            (&HOST_ALLOCATE, Self::Allocate),
            (&HOST_PRESENT, Self::Present),
            (&HOST_FREE, Self::Free),
            (&HOST_FREE_REQUESTED, Self::FreeRequested),
            (&HOST_FREE_COMPLETED, Self::FreeCompleted),
            (&SEGMENT, Self::Segment),
            (&SEGMENT_PRESENT, Self::SegmentPresent),
            (&SEGMENT_MAP, Self::SegmentMap),
            (&SEGMENT_FREE, Self::SegmentFree),
            (&SEGMENT_UNMAP, Self::SegmentUnmap),
        ];
        known.into_iter().find(|(known, _)| is_called_as(kind, known)).map(|(_, action)| action)
    }
}

/// A row of a listing of all segments and blocks of a host allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// The listing begins.
    Begin {
        /// The reason of the listing: see [`REASON`](super::fields::REASON).
        reason: u64,
    },
    /// The listing ends.
    End,
    /// A segment.
    Segment(HostStateRow),
    /// A block in the preceding segment.
    Block(HostStateRow),
    /// A row of a kind that this version does not know.
    Other,
}

/// A segment or a block in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostStateRow {
    /// The device.
    pub device: i64,
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The number of bytes that were requested, for a block.
    pub requested: u64,
    /// The number of the stack; 0 if none was recorded.
    pub stack: u32,
    /// The stream that uses it.
    pub stream: u64,
    /// The pool that it belongs to.
    pub pool: u64,
    /// Flags as in the file: see [`SEGMENT_IS_LARGE`] and the constants after it.
    pub flags: u64,
}

pub(super) const LISTING_FIELDS: &[Field] = &[STATE, REASON];
pub(super) const ROW_FIELDS: &[Field] = &[SIZE, DEVICE, STREAM, POOL, FLAGS, REQUESTED];

pub(super) fn state_form(kind: &EventKind) -> Form {
    let known =
        [(&HOST_STATE, Form::ListingState), (&SEGMENT_STATE, Form::SegmentState), (&BLOCK_STATE, Form::BlockState)];
    let found = known.into_iter().find(|(known, _)| is_called_as(kind, known));
    found.map_or(Form::OtherState, |(_, form)| form)
}

impl HostState {
    #[inline]
    pub(super) fn decode(layout: &EventLayout, words: &[u64]) -> Self {
        let [state, reason, ..] = layout.named;
        match layout.form {
            Form::SegmentState => Self::Segment(HostStateRow::decode(layout, words)),
            Form::BlockState => Self::Block(HostStateRow::decode(layout, words)),
            Form::ListingState if state.word(words) == STATE_BEGINS => Self::Begin { reason: reason.word(words) },
            Form::ListingState if state.word(words) == STATE_ENDS => Self::End,
            _ => Self::Other,
        }
    }
}

impl HostStateRow {
    #[inline]
    fn decode(layout: &EventLayout, words: &[u64]) -> Self {
        let [size, device, stream, pool, flags, requested, ..] = layout.named;
        Self {
            device: device.device(words),
            address: layout.address.word(words),
            size: size.word(words),
            requested: requested.word(words),
            stack: layout.stack.number(words),
            stream: stream.word(words),
            pool: pool.word(words),
            flags: flags.word(words),
        }
    }

    /// Returns whether a segment is for large blocks.
    pub const fn is_large(&self) -> bool {
        self.flags & SEGMENT_IS_LARGE != 0
    }

    /// Returns whether a segment may grow.
    pub const fn grows(&self) -> bool {
        self.flags & SEGMENT_GROWS != 0
    }

    /// Returns whether a block belongs to the program.
    pub const fn is_allocated(&self) -> bool {
        self.flags & BLOCK_IS_ALLOCATED != 0
    }

    /// Returns whether the program or a device uses a block.
    pub const fn is_active(&self) -> bool {
        self.flags & BLOCK_IS_ACTIVE != 0
    }
}
