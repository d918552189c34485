//! The events of a host's own allocator.

use stackweave_memory::HostEventKind;

/// The kinds of events in a host's allocator, for stackweave_record_host_event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum stackweave_host_event_kind {
    /// The allocator has allocated a block: as stackweave_record_allocate.
    STACKWEAVE_HOST_ALLOCATE = 1,
    /// The allocator frees a block, and may reuse it at once: as stackweave_record_free.
    STACKWEAVE_HOST_FREE = 2,
    /// The allocator has allocated a segment: as stackweave_record_segment_allocate.
    STACKWEAVE_HOST_SEGMENT_ALLOCATE = 3,
    /// The allocator frees a segment: as stackweave_record_segment_free.
    STACKWEAVE_HOST_SEGMENT_FREE = 4,
    /// A block was allocated before the recording began. It has no stack.
    STACKWEAVE_HOST_BLOCK_PRESENT = 5,
    /// The program frees a block that a device may still use.
    STACKWEAVE_HOST_FREE_REQUESTED = 6,
    /// The allocator may reuse a block that the program has freed.
    STACKWEAVE_HOST_FREE_COMPLETED = 7,
    /// A segment existed when the recording began.
    STACKWEAVE_HOST_SEGMENT_PRESENT = 8,
    /// Memory was mapped into a part of an expandable segment.
    STACKWEAVE_HOST_SEGMENT_MAP = 9,
    /// The memory of a part of an expandable segment is unmapped.
    STACKWEAVE_HOST_SEGMENT_UNMAP = 10,
    /// The program requested a state snapshot of the allocator.
    STACKWEAVE_HOST_SNAPSHOT = 11,
    /// A request for this many bytes failed. The address is the number of bytes that the device has free.
    STACKWEAVE_HOST_OUT_OF_MEMORY = 12,
    /// The program annotates a block with a text.
    STACKWEAVE_HOST_ANNOTATE = 13,
    /// The text becomes the tag of the calling thread's later allocations; null removes the tag.
    STACKWEAVE_HOST_TAG = 14,
    /// A state snapshot begins, which lists all segments, each followed by its blocks, and is recorded by one thread. The flags
    /// are its reason: 0 the recording ends, 1 out of memory, 2 the program requested it. Waits for the writer, so do not call
    /// it with a lock held that the allocator takes.
    STACKWEAVE_HOST_STATE_BEGIN = 15,
    /// A segment in a state snapshot. Flags: 1 for large blocks, 2 expandable.
    STACKWEAVE_HOST_SEGMENT_STATE = 16,
    /// A block in a state snapshot, with its actual and its requested bytes. Flags: 1 allocated by the program, 2 not yet
    /// reusable. Its stack is that of its allocation.
    STACKWEAVE_HOST_BLOCK_STATE = 17,
    /// The state snapshot ends.
    STACKWEAVE_HOST_STATE_END = 18,
}

const _: () = {
    let known = [
        (stackweave_host_event_kind::STACKWEAVE_HOST_ALLOCATE, HostEventKind::Allocate),
        (stackweave_host_event_kind::STACKWEAVE_HOST_FREE, HostEventKind::Free),
        (stackweave_host_event_kind::STACKWEAVE_HOST_SEGMENT_ALLOCATE, HostEventKind::Segment),
        (stackweave_host_event_kind::STACKWEAVE_HOST_SEGMENT_FREE, HostEventKind::SegmentFree),
        (stackweave_host_event_kind::STACKWEAVE_HOST_BLOCK_PRESENT, HostEventKind::Present),
        (stackweave_host_event_kind::STACKWEAVE_HOST_FREE_REQUESTED, HostEventKind::FreeRequested),
        (stackweave_host_event_kind::STACKWEAVE_HOST_FREE_COMPLETED, HostEventKind::FreeCompleted),
        (stackweave_host_event_kind::STACKWEAVE_HOST_SEGMENT_PRESENT, HostEventKind::SegmentPresent),
        (stackweave_host_event_kind::STACKWEAVE_HOST_SEGMENT_MAP, HostEventKind::SegmentMap),
        (stackweave_host_event_kind::STACKWEAVE_HOST_SEGMENT_UNMAP, HostEventKind::SegmentUnmap),
        (stackweave_host_event_kind::STACKWEAVE_HOST_SNAPSHOT, HostEventKind::Snapshot),
        (stackweave_host_event_kind::STACKWEAVE_HOST_OUT_OF_MEMORY, HostEventKind::OutOfMemory),
        (stackweave_host_event_kind::STACKWEAVE_HOST_ANNOTATE, HostEventKind::Annotate),
        (stackweave_host_event_kind::STACKWEAVE_HOST_TAG, HostEventKind::Tag),
        (stackweave_host_event_kind::STACKWEAVE_HOST_STATE_BEGIN, HostEventKind::StateBegin),
        (stackweave_host_event_kind::STACKWEAVE_HOST_SEGMENT_STATE, HostEventKind::SegmentState),
        (stackweave_host_event_kind::STACKWEAVE_HOST_BLOCK_STATE, HostEventKind::BlockState),
        (stackweave_host_event_kind::STACKWEAVE_HOST_STATE_END, HostEventKind::StateEnd),
    ];
    assert!(known.len() == HostEventKind::ALL.len());
    let mut index = 0;
    while index < known.len() {
        assert!(known[index].0 as u32 == known[index].1 as u32, "an event has the same number in C and in Rust");
        index += 1;
    }
};
