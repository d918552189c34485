//! Memory that the allocator of a host manages, as a tensor library does that of a GPU.
//!
//! Segments are where a host's blocks lie: they are not counted.

use super::declare::family;

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
