//! The events of a memory recorder, and what they mean to who reads them.
//!
//! | event | role | fields |
//! |---|---|---|
//! | an [`Allocator`]'s name, of one that takes blocks | allocate | address, size, stack |
//! | `mmap`, `mremap` | map | address, size, stack |
//! | [`EventKind::FREE`], [`EventKind::FREE_AT`] | free | address (, stack) |
//! | `munmap` | unmap | address, size |
//! | `kept` | keep | address |
//! | `memory-tag` | tag | frame |
//! | `host-allocate`, `host-present` | allocate | address, size, stack, device, stream, pool |
//! | `host-free`, `host-free-requested` | free | the same |
//! | `host-free-completed` | complete | the same |
//! | `segment`, `segment-present`, `segment-map` | map | the same |
//! | `segment-free`, `segment-unmap` | unmap | the same |
//! | `host-snapshot`, `host-out-of-memory`, `host-annotate` | instant | a frame with the name, and what they are about |
//! | `host-state`, `segment-state`, `block-state` | state | an account of all that a host has |
//! | `memory-usage`, `memory-sizes`, `memory-total` | usage | figures of a snapshot |
//!
//! A block is given back by its address, whichever allocator took it. Addresses of events with a `device` are that device's;
//! those of all others are the process's own memory, [`EventKind::OWN_DEVICE`]. Segments are where a host's blocks lie: they are
//! not counted. A snapshot is whole when its `memory-total` is there, for each device; a later one takes the place of an
//! earlier one.

use crate::event::{ADDRESS, FRAME, Field, FieldType, STACK};
use crate::{EventKind, Role};

/// Who was asked for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is the function that it is called")]
pub enum Allocator {
    Malloc,
    Calloc,
    Realloc,
    ReallocArray,
    PosixMemalign,
    AlignedAlloc,
    Memalign,
    Valloc,
    Pvalloc,
    /// C++'s, where it does not come to `malloc`.
    OperatorNew,
    Mmap,
    Mremap,
    PyMemMalloc,
    PyMemCalloc,
    PyMemRealloc,
    PyObjectMalloc,
    PyObjectCalloc,
    PyObjectRealloc,
}

impl Allocator {
    /// Every allocator, in the order of their numbers.
    pub const ALL: [Self; 18] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::ReallocArray,
        Self::PosixMemalign,
        Self::AlignedAlloc,
        Self::Memalign,
        Self::Valloc,
        Self::Pvalloc,
        Self::OperatorNew,
        Self::Mmap,
        Self::Mremap,
        Self::PyMemMalloc,
        Self::PyMemCalloc,
        Self::PyMemRealloc,
        Self::PyObjectMalloc,
        Self::PyObjectCalloc,
        Self::PyObjectRealloc,
    ];

    /// What it is called; the name of its kind of events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Calloc => "calloc",
            Self::Realloc => "realloc",
            Self::ReallocArray => "reallocarray",
            Self::PosixMemalign => "posix_memalign",
            Self::AlignedAlloc => "aligned_alloc",
            Self::Memalign => "memalign",
            Self::Valloc => "valloc",
            Self::Pvalloc => "pvalloc",
            Self::OperatorNew => "operator new",
            Self::Mmap => "mmap",
            Self::Mremap => "mremap",
            Self::PyMemMalloc => "PyMem_Malloc",
            Self::PyMemCalloc => "PyMem_Calloc",
            Self::PyMemRealloc => "PyMem_Realloc",
            Self::PyObjectMalloc => "PyObject_Malloc",
            Self::PyObjectCalloc => "PyObject_Calloc",
            Self::PyObjectRealloc => "PyObject_Realloc",
        }
    }

    /// Whether what it takes is a range of addresses, and not a block.
    pub const fn is_mapping(self) -> bool {
        matches!(self, Self::Mmap | Self::Mremap)
    }

    /// The kind of its events.
    pub const fn kind(self) -> EventKind {
        let role = if self.is_mapping() { Role::Map } else { Role::Allocate };
        EventKind::known(self.as_str(), role, const { &[ADDRESS, SIZE, STACK] })
    }
}

impl EventKind {
    /// The device that stands for the process's own memory.
    pub const OWN_DEVICE: i64 = -1;
    /// In the number of a pool: it is one of a graph, whose number is the rest.
    pub const POOL_OF_GRAPH: u64 = 1 << 63;
    /// The state of an account that begins.
    pub const ACCOUNT_BEGINS: u64 = 1;
    /// The state of one that ends.
    pub const ACCOUNT_ENDS: u64 = 2;
    /// In the flags of a segment: it is for large blocks.
    pub const SEGMENT_IS_LARGE: u64 = 1;
    /// In the flags of a segment: it may grow.
    pub const SEGMENT_GROWS: u64 = 2;
    /// In the flags of a block: it belongs to the program.
    pub const BLOCK_IS_ALLOCATED: u64 = 1;
    /// In the flags of a block: the program or a device uses it.
    pub const BLOCK_IS_ACTIVE: u64 = 2;

    /// Memory is given back, on this stack: `free-at(address, stack)`.
    pub const FREE_AT: Self = Self::known("free-at", Role::Free, const { &[ADDRESS, STACK] });
    /// Addresses are given back: `munmap(address, size)`.
    pub const MUNMAP: Self = Self::known("munmap", Role::Unmap, const { &[ADDRESS, SIZE] });
    /// The free before it did not happen: `kept(address)`.
    pub const KEPT: Self = Self::known("kept", Role::Keep, const { &[ADDRESS] });
    /// The thread's tag changes: `memory-tag(frame)`.
    pub const MEMORY_TAG: Self = Self::known("memory-tag", Role::Tag, const { &[FRAME] });
    /// A host's allocator takes memory. All kinds of a host but the last ones have these fields: `host-allocate(address, size,
    /// stack, device, stream, pool)`.
    pub const HOST_ALLOCATE: Self = Self::known("host-allocate", Role::Allocate, OF_HOST);
    /// It had taken this when the recording began.
    pub const HOST_PRESENT: Self = Self::known("host-present", Role::Allocate, OF_HOST);
    /// It gives memory back, which may be given out again at once.
    pub const HOST_FREE: Self = Self::known("host-free", Role::Free, OF_HOST);
    /// The program gives memory back; a device may still use it.
    pub const HOST_FREE_REQUESTED: Self = Self::known("host-free-requested", Role::Free, OF_HOST);
    /// What the program gave back may be given out again.
    pub const HOST_FREE_COMPLETED: Self = Self::known("host-free-completed", Role::Complete, OF_HOST);
    /// It gets room for blocks.
    pub const SEGMENT: Self = Self::known("segment", Role::Map, OF_HOST);
    /// It had this room when the recording began.
    pub const SEGMENT_PRESENT: Self = Self::known("segment-present", Role::Map, OF_HOST);
    /// A part of a segment that grows gets memory behind it.
    pub const SEGMENT_MAP: Self = Self::known("segment-map", Role::Map, OF_HOST);
    /// It gives room back.
    pub const SEGMENT_FREE: Self = Self::known("segment-free", Role::Unmap, OF_HOST);
    /// A part of a segment that grows loses the memory behind it.
    pub const SEGMENT_UNMAP: Self = Self::known("segment-unmap", Role::Unmap, OF_HOST);
    /// Somebody has asked a host for an account: `host-snapshot(frame, size, stack, device)`, the size being what
    /// is in use.
    pub const HOST_SNAPSHOT: Self =
        Self::known("host-snapshot", Role::Instant, const { &[FRAME, SIZE, STACK, DEVICE] });
    /// A host has no memory for a request: `host-out-of-memory(frame, size, stack, device, stream, pool, free)`.
    pub const HOST_OUT_OF_MEMORY: Self = Self::known(
        "host-out-of-memory",
        Role::Instant,
        const { &[FRAME, SIZE, STACK, DEVICE, STREAM, POOL, Field::new("free", FieldType::Unsigned)] },
    );
    /// The program says something of a block: `host-annotate(frame, address, stack, device)`.
    pub const HOST_ANNOTATE: Self =
        Self::known("host-annotate", Role::Instant, const { &[FRAME, ADDRESS, STACK, DEVICE] });
    /// A host's account of all its segments and blocks begins or ends: `host-state(state, reason)`.
    pub const HOST_STATE: Self = Self::known(
        "host-state",
        Role::State,
        const { &[Field::new("state", FieldType::Unsigned), Field::new("reason", FieldType::Unsigned)] },
    );
    /// A segment in such an account, then its blocks: `segment-state(address, size, stack, device, stream, pool, flags)`.
    pub const SEGMENT_STATE: Self =
        Self::known("segment-state", Role::State, const { &[ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL, FLAGS] });
    /// A block in such an account, with its real size: `block-state(address, size, stack, device, stream, pool, asked, flags)`.
    pub const BLOCK_STATE: Self = Self::known(
        "block-state",
        Role::State,
        const { &[ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL, Field::new("asked", FieldType::Unsigned), FLAGS] },
    );
    /// What one place, by stack, allocator, tag and thread, has used.
    pub const MEMORY_USAGE: Self = Self::known(
        "memory-usage",
        Role::Usage,
        const {
            &[
                STACK,
                Field::new("allocator", FieldType::Frame),
                Field::new("tag", FieldType::Frame),
                SNAPSHOT,
                Field::new("thread", FieldType::Unsigned),
                DEVICE,
                ALLOCATIONS,
                BYTES,
                LIVE_BLOCKS,
                LIVE_BYTES,
                PEAK_BLOCKS,
                PEAK_BYTES,
                TEMPORARY,
                TEMPORARY_BYTES,
            ]
        },
    );
    /// What blocks of one size class, of more than half of `most` bytes and at most `most`, have used.
    pub const MEMORY_SIZES: Self = Self::known(
        "memory-sizes",
        Role::Usage,
        const {
            &[
                SNAPSHOT,
                DEVICE,
                Field::new("most", FieldType::Unsigned),
                ALLOCATIONS,
                BYTES,
                LIVE_BLOCKS,
                LIVE_BYTES,
                PEAK_BLOCKS,
                PEAK_BYTES,
            ]
        },
    );
    /// What a device, or the process, has used. The last event of its device in a snapshot. The peak was `peak_ago` before it.
    pub const MEMORY_TOTAL: Self = Self::known(
        "memory-total",
        Role::Usage,
        const {
            &[
                SNAPSHOT,
                DEVICE,
                Field::new("peak_ago", FieldType::Ticks),
                ALLOCATIONS,
                BYTES,
                LIVE_BLOCKS,
                LIVE_BYTES,
                PEAK_BLOCKS,
                PEAK_BYTES,
                TEMPORARY,
                TEMPORARY_BYTES,
                Field::new("frees", FieldType::Unsigned),
                Field::new("unknown_frees", FieldType::Unsigned),
                Field::new("replaced", FieldType::Unsigned),
            ]
        },
    );
}

/// What is said of each block of a host.
const OF_HOST: &[Field] = &[ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL];

const SIZE: Field = Field::new("size", FieldType::Unsigned);
const DEVICE: Field = Field::new("device", FieldType::Signed);
const STREAM: Field = Field::new("stream", FieldType::Unsigned);
const POOL: Field = Field::new("pool", FieldType::Unsigned);
const FLAGS: Field = Field::new("flags", FieldType::Unsigned);
const SNAPSHOT: Field = Field::new("snapshot", FieldType::Unsigned);
const ALLOCATIONS: Field = Field::new("allocations", FieldType::Unsigned);
const BYTES: Field = Field::new("bytes", FieldType::Unsigned);
const LIVE_BLOCKS: Field = Field::new("live_blocks", FieldType::Unsigned);
const LIVE_BYTES: Field = Field::new("live_bytes", FieldType::Unsigned);
const PEAK_BLOCKS: Field = Field::new("peak_blocks", FieldType::Unsigned);
const PEAK_BYTES: Field = Field::new("peak_bytes", FieldType::Unsigned);
const TEMPORARY: Field = Field::new("temporary", FieldType::Unsigned);
const TEMPORARY_BYTES: Field = Field::new("temporary_bytes", FieldType::Unsigned);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_keep_to_the_rules() {
        let of_allocators = Allocator::ALL.map(Allocator::kind);
        let others = [
            EventKind::FREE_AT,
            EventKind::MUNMAP,
            EventKind::KEPT,
            EventKind::MEMORY_TAG,
            EventKind::HOST_ALLOCATE,
            EventKind::HOST_PRESENT,
            EventKind::HOST_FREE,
            EventKind::HOST_FREE_REQUESTED,
            EventKind::HOST_FREE_COMPLETED,
            EventKind::SEGMENT,
            EventKind::SEGMENT_PRESENT,
            EventKind::SEGMENT_MAP,
            EventKind::SEGMENT_FREE,
            EventKind::SEGMENT_UNMAP,
            EventKind::HOST_SNAPSHOT,
            EventKind::HOST_OUT_OF_MEMORY,
            EventKind::HOST_ANNOTATE,
            EventKind::HOST_STATE,
            EventKind::SEGMENT_STATE,
            EventKind::BLOCK_STATE,
            EventKind::MEMORY_USAGE,
            EventKind::MEMORY_SIZES,
            EventKind::MEMORY_TOTAL,
        ];
        assert!(of_allocators.iter().chain(&others).all(EventKind::is_sound));
        assert!(Allocator::ALL.iter().enumerate().all(|(number, allocator)| *allocator as usize == number));
    }
}
