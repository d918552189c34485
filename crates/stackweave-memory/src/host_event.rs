//! The kinds of events in a host's allocator.

use stackweave_core::EventKind;
use stackweave_recording::events;

/// An event in a host's allocator, by its number in the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum HostEventKind {
    /// A block was allocated.
    Allocate = 1,
    /// A block is freed, and may be allocated again at once.
    Free = 2,
    /// A segment for blocks was allocated.
    Segment = 3,
    /// A segment, or a part of one, is freed.
    SegmentFree = 4,
    /// A block was already in use when the recording began.
    Present = 5,
    /// The program frees a block; a device may still use it.
    FreeRequested = 6,
    /// A block that the program freed may be allocated again.
    FreeCompleted = 7,
    /// A segment existed when the recording began.
    SegmentPresent = 8,
    /// A part of an expandable segment was mapped.
    SegmentMap = 9,
    /// A part of an expandable segment is unmapped.
    SegmentUnmap = 10,
    /// The program requested a state snapshot of the allocator.
    Snapshot = 11,
    /// A request failed for lack of memory. The address is the number of free bytes on the device.
    OutOfMemory = 12,
    /// The program annotates a block.
    Annotate = 13,
    /// Later allocations of the calling thread have this tag.
    Tag = 14,
    /// A state snapshot of all segments and blocks begins. The flags are the reason for it.
    StateBegin = 15,
    /// A segment in a state snapshot. Flags: 1 for large blocks, 2 expandable.
    SegmentState = 16,
    /// A block in a state snapshot. Flags: 1 used by the program, 2 not available.
    BlockState = 17,
    /// The state snapshot ends.
    StateEnd = 18,
}

impl HostEventKind {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::Allocate,
        Self::Free,
        Self::Segment,
        Self::SegmentFree,
        Self::Present,
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentPresent,
        Self::SegmentMap,
        Self::SegmentUnmap,
        Self::Snapshot,
        Self::OutOfMemory,
        Self::Annotate,
        Self::Tag,
        Self::StateBegin,
        Self::SegmentState,
        Self::BlockState,
        Self::StateEnd,
    ];
    /// The number of kinds, from the first on, that are about one block or segment. They have the same fields.
    pub(crate) const OF_BLOCKS: usize = 10;

    /// Returns the kind with this number.
    #[inline]
    pub const fn from_number(number: u32) -> Option<Self> {
        if number == 0 || number as usize > Self::ALL.len() { None } else { Some(Self::ALL[number as usize - 1]) }
    }

    /// Returns the index in [`HostEventKind::ALL`].
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self as usize - 1
    }

    /// Returns the kind of event by which it is recorded.
    pub const fn event_kind(self) -> EventKind {
        match self {
            Self::Allocate => events::HOST_ALLOCATE,
            Self::Free => events::HOST_FREE,
            Self::Segment => events::SEGMENT,
            Self::SegmentFree => events::SEGMENT_FREE,
            Self::Present => events::HOST_PRESENT,
            Self::FreeRequested => events::HOST_FREE_REQUESTED,
            Self::FreeCompleted => events::HOST_FREE_COMPLETED,
            Self::SegmentPresent => events::SEGMENT_PRESENT,
            Self::SegmentMap => events::SEGMENT_MAP,
            Self::SegmentUnmap => events::SEGMENT_UNMAP,
            Self::Snapshot => events::HOST_SNAPSHOT,
            Self::OutOfMemory => events::HOST_OUT_OF_MEMORY,
            Self::Annotate => events::HOST_ANNOTATE,
            Self::Tag => events::MEMORY_TAG,
            Self::StateBegin | Self::StateEnd => events::HOST_STATE,
            Self::SegmentState => events::SEGMENT_STATE,
            Self::BlockState => events::BLOCK_STATE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_c_interface_and_kinds_of_blocks_come_first() {
        for (index, kind) in HostEventKind::ALL.into_iter().enumerate() {
            assert_eq!(HostEventKind::from_number(kind as u32), Some(kind));
            assert_eq!(kind.index(), index);
            let is_of_block = kind.event_kind().fields == events::HOST_ALLOCATE.fields;
            assert_eq!(is_of_block, index < HostEventKind::OF_BLOCKS, "{kind:?}");
        }
        assert_eq!(HostEventKind::from_number(0), None);
        assert_eq!(HostEventKind::from_number(19), None);
    }
}
