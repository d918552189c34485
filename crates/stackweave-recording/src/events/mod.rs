//! The events of recordings: the declaration of each family, and the meaning of decoded events.
//!
//! | file | family |
//! |---|---|
//! | `calls` | calls of Python and native functions, generators, collections |
//! | `phases` | spans that a program names |
//! | `instants`, `counters`, `samples` | events without a duration, quantities, sampled stacks |
//! | `allocations`, `mappings` | memory of the process |
//! | `devices` | memory of devices that the allocator of a host manages |
//! | `usage` | snapshots of a memory recorder |
//!
//! A recorder registers the constants of a family. A recording declares them again, so a reader decodes kinds that it does not
//! know by their roles.

mod allocations;
mod calls;
mod counters;
mod declare;
mod decoder;
mod devices;
pub mod fields;
mod instants;
mod layout;
mod mappings;
mod memory;
mod phases;
mod samples;
mod usage;

use stackweave_core::EventKind;

pub use allocations::{ALLOCATE, Allocator, FREE, FREE_AT, KEPT, MEMORY_TAG};
pub use calls::{
    C_CALL, CALL, DEMOTED, GC, GC_END, GENERATOR, NAME, OPEN, ObjectName, RAISE, RESUME, TRACE_NOTE, YIELD,
};
pub use counters::{COUNTER, Counter};
pub use declare::{DeclaredKind, Family};
pub use decoder::Decoder;
pub use devices::{
    BLOCK_IS_ACTIVE, BLOCK_IS_ALLOCATED, BLOCK_STATE, HOST_ALLOCATE, HOST_ANNOTATE, HOST_FREE, HOST_FREE_COMPLETED,
    HOST_FREE_REQUESTED, HOST_OUT_OF_MEMORY, HOST_PRESENT, HOST_SNAPSHOT, HOST_STATE, HostAction, HostState,
    HostStateRow, POOL_OF_GRAPH, SEGMENT, SEGMENT_FREE, SEGMENT_GROWS, SEGMENT_IS_LARGE, SEGMENT_MAP, SEGMENT_PRESENT,
    SEGMENT_STATE, SEGMENT_UNMAP, STATE_BEGINS, STATE_ENDS,
};
pub use instants::{INSTANT, INSTANT_WITH, Instant, InstantSubject, OutOfMemory};
pub use layout::{EventLayout, HeapChange, WordIndex};
pub use mappings::MUNMAP;
pub use memory::{MemoryEvent, Region};
pub use phases::{
    BEGIN, BEGIN_AT, BEGIN_CODE, BEGIN_RUN, BEGIN_WITH, Begin, END, END_FAILED, END_LEFT_OPEN, END_WITH, Ending,
    OpenSpan, STILL_OPEN, SpanEnd, TIMING, UNMATCHED_POP,
};
pub use samples::{SAMPLE, Sample};
pub use usage::{MEMORY_SIZES, MEMORY_TOTAL, MEMORY_USAGE, Usage, UsageSubject};

/// The meaning of an event. Frames and stacks are numbers of the section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// A span begins, inside the open ones of the thread.
    Begin(Begin<'a>),
    /// A span that began earlier is open.
    Open(OpenSpan),
    /// The innermost span of the thread ends.
    End(SpanEnd<'a>),
    /// An object has a name from this event on.
    Name(ObjectName),
    /// An event without a duration.
    Instant(Instant),
    /// A quantity changes.
    Counter(Counter),
    /// A thread was on a stack.
    Sample(Sample),
    /// Memory is allocated, mapped, or reserved for blocks of a device.
    Allocate(MemoryEvent),
    /// Memory is freed, unmapped, or released.
    Free(MemoryEvent),
    /// Freed memory may be allocated again. The live memory does not change.
    Complete(MemoryEvent),
    /// The thread's last free is undone.
    Keep {
        /// The address of its first byte.
        address: u64,
    },
    /// The thread's later allocations have this tag.
    Tag {
        /// The number of a frame: the label with its name; 0 for none.
        frame: u32,
    },
    /// A row of a listing of all memory of a host allocator.
    State(HostState),
    /// Figures of a snapshot.
    Usage(Usage),
    /// An event of a kind whose declaration was lost.
    Other,
}

impl Event<'_> {
    /// Returns whether it changes the live memory or the tag of a thread. Segments are not counted.
    #[inline]
    pub const fn changes_heap(&self) -> bool {
        match self {
            Self::Allocate(memory) | Self::Free(memory) => !matches!(memory.region, Region::Segment(_)),
            Self::Keep { .. } | Self::Tag { .. } => true,
            _ => false,
        }
    }

    /// Returns whether it is about the spans or samples of a thread.
    #[inline]
    pub const fn is_of_time(&self) -> bool {
        matches!(self, Self::Begin(_) | Self::Open(_) | Self::End(_) | Self::Sample(_))
    }
}

/// The kinds that every recorder has, in the order of their numbers.
pub const BUILT_IN: [EventKind; 10] =
    [BEGIN, BEGIN_AT, BEGIN_WITH, END, INSTANT, INSTANT_WITH, COUNTER, SAMPLE, ALLOCATE, FREE];

/// Returns all families.
pub fn families() -> Vec<Family> {
    vec![
        calls::family(),
        phases::family(),
        instants::family(),
        counters::family(),
        samples::family(),
        allocations::family(),
        allocations::allocators(),
        mappings::family(),
        devices::family(),
        usage::family(),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn kinds_are_valid_and_have_unique_names() {
        let kinds: Vec<_> = families().into_iter().flat_map(|family| family.kinds).map(|known| known.kind).collect();
        assert!(kinds.iter().all(EventKind::is_valid));
        let names: BTreeSet<_> = kinds.iter().map(|kind| kind.name.clone()).collect();
        assert_eq!(names.len(), kinds.len());
    }

    #[test]
    fn every_field_is_declared_once_and_used() {
        let used: BTreeSet<_> = families()
            .into_iter()
            .flat_map(|family| family.kinds)
            .flat_map(|known| known.kind.fields.into_owned())
            .map(|field| field.name)
            .chain([fields::CALLER.name])
            .collect();
        let declared: BTreeSet<_> = fields::ALL.iter().map(|known| known.field.name.clone()).collect();
        assert_eq!(used, declared);
        assert_eq!(declared.len(), fields::ALL.len());
    }

    #[test]
    fn allocators_are_numbered_in_the_order_of_the_list() {
        assert!(Allocator::ALL.iter().enumerate().all(|(number, allocator)| *allocator as usize == number));
    }
}
