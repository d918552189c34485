//! What happens in a host's allocator.

use stackweave_core::EventKind;
use stackweave_recording::events;

/// What happens, by the numbers of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum HostEvent {
    /// A block was taken.
    Allocate = 1,
    /// A block is given back, and may be given out again at once.
    Free = 2,
    /// Room for blocks was got.
    Segment = 3,
    /// Room is given back: a segment, or a part of one.
    SegmentFree = 4,
    /// A block is in use, and was when the recording began.
    Present = 5,
    /// The program gives a block back; a device may still use it.
    FreeRequested = 6,
    /// What the program gave back may be given out again.
    FreeCompleted = 7,
    /// There is room for blocks, as there was when the recording began.
    SegmentPresent = 8,
    /// A part of a segment that grows has got memory behind it.
    SegmentMap = 9,
    /// A part of a segment that grows loses the memory behind it.
    SegmentUnmap = 10,
    /// Somebody has asked for an account.
    Snapshot = 11,
    /// There is no memory for a request. The address is how many bytes the device has free.
    OutOfMemory = 12,
    /// The program says something of a block.
    Annotate = 13,
    /// What the calling thread takes from now on has this tag.
    Tag = 14,
    /// An account of all segments and blocks begins. The flags say why it is made.
    StateBegin = 15,
    /// A segment in such an account. Flags: 1 for large blocks, 2 it grows.
    SegmentState = 16,
    /// A block in such an account. Flags: 1 in use by the program, 2 not to be given out.
    BlockState = 17,
    /// The account ends.
    StateEnd = 18,
}

impl HostEvent {
    /// Every event.
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
    /// How many, from the first on, are of one block or segment, and have the same fields.
    pub(crate) const OF_BLOCKS: usize = 10;

    /// The event with this number.
    #[inline]
    pub const fn from_number(number: u32) -> Option<Self> {
        if number == 0 || number as usize > Self::ALL.len() { None } else { Some(Self::ALL[number as usize - 1]) }
    }

    /// Its place in [`HostEvent::ALL`].
    #[inline]
    pub(crate) const fn place(self) -> usize {
        self as usize - 1
    }

    /// What it is recorded as.
    pub const fn kind(self) -> EventKind {
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
    fn each_has_its_number_and_those_of_blocks_come_first() {
        for (place, event) in HostEvent::ALL.into_iter().enumerate() {
            assert_eq!(HostEvent::from_number(event as u32), Some(event));
            assert_eq!(event.place(), place);
            let is_of_block = event.kind().fields == events::HOST_ALLOCATE.fields;
            assert_eq!(is_of_block, place < HostEvent::OF_BLOCKS, "{event:?}");
        }
        assert_eq!(HostEvent::from_number(0), None);
        assert_eq!(HostEvent::from_number(19), None);
    }
}
