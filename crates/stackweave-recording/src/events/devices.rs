//! Memory that the allocator of a host manages, as a tensor library does that of a GPU.
//!
//! Segments are where a host's blocks lie: they are not counted.

use stackweave_core::{EventKind, Field};

use super::declare::family;
use super::fields::{DEVICE, FLAGS, POOL, REASON, REQUESTED, SIZE, STATE, STREAM};
use super::layout::{Form, Layout, is_called_as};

/// In the number of a pool: it is that of a graph, whose number is the rest.
pub const POOL_OF_GRAPH: u64 = 1 << 63;
/// The state of an account that begins.
pub const ACCOUNT_BEGINS: u64 = 1;
/// The state of an account that ends.
pub const ACCOUNT_ENDS: u64 = 2;
/// In the flags of a segment: it is for large blocks.
pub const SEGMENT_IS_LARGE: u64 = 1;
/// In the flags of a segment: it may grow.
pub const SEGMENT_GROWS: u64 = 2;
/// In the flags of a block: it belongs to the program.
pub const BLOCK_IS_ALLOCATED: u64 = 1;
/// In the flags of a block: the program or a device uses it.
pub const BLOCK_IS_ACTIVE: u64 = 2;

family! { "Device memory" {
    /// A block is allocated; the size is what was requested.
    HOST_ALLOCATE = "host-allocate": Allocate(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The block was in use when the recording began; its stack is a label that says so.
    HOST_PRESENT = "host-present": Allocate(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The block is freed, and its memory may be allocated again at once.
    HOST_FREE = "host-free": Free(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The program frees the block; a device may still use it.
    HOST_FREE_REQUESTED = "host-free-requested": Free(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The device does not use the block any more, so its memory may be allocated again.
    HOST_FREE_COMPLETED = "host-free-completed": Complete(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// A segment is reserved. Blocks are counted, segments are not.
    SEGMENT = "segment": Map(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The segment was there when the recording began.
    SEGMENT_PRESENT = "segment-present": Map(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// A part of a segment that grows gets memory behind it.
    SEGMENT_MAP = "segment-map": Map(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// A segment is released, or a part of one, or several.
    SEGMENT_FREE = "segment-free": Unmap(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// A part of a segment that grows loses the memory behind it.
    SEGMENT_UNMAP = "segment-unmap": Unmap(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL);
    /// The program has requested an account of the host; the size is what is in use.
    HOST_SNAPSHOT = "host-snapshot": Instant(FRAME, SIZE, STACK, DEVICE);
    /// There is no memory for a request of this size.
    HOST_OUT_OF_MEMORY = "host-out-of-memory": Instant(FRAME, SIZE, STACK, DEVICE, STREAM, POOL, FREE_BYTES);
    /// The program says something about a block, as the frame.
    HOST_ANNOTATE = "host-annotate": Instant(FRAME, ADDRESS, STACK, DEVICE);
    /// An account of all segments and blocks begins or ends: its rows lie between, on one thread.
    HOST_STATE = "host-state": State(STATE, REASON);
    /// A segment in an account.
    SEGMENT_STATE = "segment-state": State(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL, FLAGS);
    /// A block in an account, behind its segment, with its real size.
    BLOCK_STATE = "block-state": State(ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL, REQUESTED, FLAGS);
} }

/// What the allocator of a host does with a block or a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the kind that it is called, which is described where it is declared")]
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

/// A row of the account that the allocator of a host gives of all that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The account begins.
    Begin {
        /// Why it is written: see [`REASON`](super::fields::REASON).
        reason: u64,
    },
    /// It ends.
    End,
    /// A segment.
    Segment(StateRow),
    /// A block in the segment before it.
    Block(StateRow),
    /// Something that this reader does not know.
    Other,
}

/// A segment or a block in an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// The device.
    pub device: i64,
    /// Where it begins.
    pub address: u64,
    /// How many bytes.
    pub size: u64,
    /// How many bytes of a block were requested.
    pub requested: u64,
    /// The number of the stack; 0 if none was recorded.
    pub stack: u32,
    /// The stream that it is used on.
    pub stream: u64,
    /// The pool that it belongs to.
    pub pool: u64,
    /// As in the file: see [`SEGMENT_IS_LARGE`] and those behind it.
    pub flags: u64,
}

pub(super) const ACCOUNT_FIELDS: &[Field] = &[STATE, REASON];
pub(super) const ROW_FIELDS: &[Field] = &[SIZE, DEVICE, STREAM, POOL, FLAGS, REQUESTED];

pub(super) fn state_form(kind: &EventKind) -> Form {
    let known =
        [(&HOST_STATE, Form::AccountState), (&SEGMENT_STATE, Form::SegmentState), (&BLOCK_STATE, Form::BlockState)];
    let found = known.into_iter().find(|(known, _)| is_called_as(kind, known));
    found.map_or(Form::OtherState, |(_, form)| form)
}

impl State {
    #[inline]
    pub(super) fn decode(layout: &Layout, words: &[u64]) -> Self {
        let [state, reason, ..] = layout.named;
        match layout.form {
            Form::SegmentState => Self::Segment(StateRow::decode(layout, words)),
            Form::BlockState => Self::Block(StateRow::decode(layout, words)),
            Form::AccountState if state.word(words) == ACCOUNT_BEGINS => Self::Begin { reason: reason.word(words) },
            Form::AccountState if state.word(words) == ACCOUNT_ENDS => Self::End,
            _ => Self::Other,
        }
    }
}

impl StateRow {
    #[inline]
    fn decode(layout: &Layout, words: &[u64]) -> Self {
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
