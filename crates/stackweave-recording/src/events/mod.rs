//! The events of recordings: how each family is declared, and what an event means once it is decoded.
//!
//! | file | family |
//! |---|---|
//! | `calls` | calls of Python and native functions, generators, collections |
//! | `phases` | spans that a program names |
//! | `instants`, `counters`, `samples` | what happens at a time, quantities, stacks that were seen |
//! | `allocations`, `mappings` | memory of the process |
//! | `devices` | memory of devices, as the allocator of a host manages it |
//! | `usage` | snapshots of a memory recorder |
//!
//! A recorder registers the constants of a family. A recording declares them again, so a reader that has never heard of
//! a kind still reads it by its role.

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
pub use calls::{C_CALL, CALL, DEMOTED, GC, GC_END, GENERATOR, NAME, Name, OPEN, RAISE, RESUME, TRACE_NOTE, YIELD};
pub use counters::{COUNTER, Counter};
pub use declare::{DeclaredKind, Family};
pub use decoder::Decoder;
pub use devices::{
    ACCOUNT_BEGINS, ACCOUNT_ENDS, BLOCK_IS_ACTIVE, BLOCK_IS_ALLOCATED, BLOCK_STATE, HOST_ALLOCATE, HOST_ANNOTATE,
    HOST_FREE, HOST_FREE_COMPLETED, HOST_FREE_REQUESTED, HOST_OUT_OF_MEMORY, HOST_PRESENT, HOST_SNAPSHOT, HOST_STATE,
    HostAction, POOL_OF_GRAPH, SEGMENT, SEGMENT_FREE, SEGMENT_GROWS, SEGMENT_IS_LARGE, SEGMENT_MAP, SEGMENT_PRESENT,
    SEGMENT_STATE, SEGMENT_UNMAP, State, StateRow,
};
pub use instants::{About, INSTANT, INSTANT_WITH, Instant, OutOfMemory};
pub use layout::{HeapChange, Layout, Slot};
pub use mappings::MUNMAP;
pub use memory::{Memory, Region};
pub use phases::{
    BEGIN, BEGIN_AT, BEGIN_CODE, BEGIN_RUN, BEGIN_WITH, Begin, END, END_FAILED, END_LEFT_OPEN, END_WITH, End, Ending,
    Open, STILL_OPEN, TIMING, UNMATCHED_POP,
};
pub use samples::{SAMPLE, Sample};
pub use usage::{MEMORY_SIZES, MEMORY_TOTAL, MEMORY_USAGE, Usage, UsageRow};

/// What an event means. Frames and stacks are numbers of the section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// Something begins, inside what the thread has open.
    Begin(Begin<'a>),
    /// Something is open that began before.
    Open(Open),
    /// What the thread began last ends.
    End(End<'a>),
    /// An object has a name from now on.
    Name(Name),
    /// Something happens.
    Instant(Instant),
    /// A quantity changes.
    Counter(Counter),
    /// A thread was on a stack.
    Sample(Sample),
    /// Memory is allocated, mapped, or reserved for blocks of a device.
    Allocate(Memory),
    /// Memory is freed, unmapped, or released.
    Free(Memory),
    /// What was freed may be allocated again: nothing changes in what is live.
    Complete(Memory),
    /// What the thread freed last is not freed after all.
    Keep {
        /// Where it begins.
        address: u64,
    },
    /// What the thread allocates from now on has this tag.
    Tag {
        /// The label: the number of a frame; 0 for none.
        frame: u32,
    },
    /// A row of an allocator's account of all that it has.
    State(State),
    /// Figures of a snapshot.
    Usage(Usage),
    /// An event whose kind is not declared: its declaration was lost.
    Other,
}

impl Event<'_> {
    /// Returns whether it changes what is live, or which tag that has. Segments are not counted.
    #[inline]
    pub const fn changes_heap(&self) -> bool {
        match self {
            Self::Allocate(memory) | Self::Free(memory) => !matches!(memory.region, Region::Segment(_)),
            Self::Keep { .. } | Self::Tag { .. } => true,
            _ => false,
        }
    }

    /// Returns whether it says what a thread does at a time: it begins, is open, ends, or is seen in a sample.
    #[inline]
    pub const fn is_of_time(&self) -> bool {
        matches!(self, Self::Begin(_) | Self::Open(_) | Self::End(_) | Self::Sample(_))
    }
}

/// The kinds that every recorder has, in the order of their numbers.
pub const BUILT_IN: [EventKind; 10] =
    [BEGIN, BEGIN_AT, BEGIN_WITH, END, INSTANT, INSTANT_WITH, COUNTER, SAMPLE, ALLOCATE, FREE];

/// Returns every family that is declared.
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
    fn kinds_keep_to_the_rules_and_have_names_of_their_own() {
        let kinds: Vec<_> = families().into_iter().flat_map(|family| family.kinds).map(|known| known.kind).collect();
        assert!(kinds.iter().all(EventKind::is_sound));
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
    fn allocators_have_their_places_as_numbers() {
        assert!(Allocator::ALL.iter().enumerate().all(|(number, allocator)| *allocator as usize == number));
    }
}
