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
mod devices;
pub mod fields;
mod instants;
mod mappings;
mod phases;
mod samples;
mod usage;

use stackweave_core::EventKind;

pub use allocations::{ALLOCATE, Allocator, FREE, FREE_AT, KEPT, MEMORY_TAG};
pub use calls::{C_CALL, CALL, DEMOTED, GC, GC_END, GENERATOR, NAME, OPEN, RAISE, RESUME, TRACE_NOTE, YIELD};
pub use counters::COUNTER;
pub use declare::{DeclaredKind, Family};
pub use devices::{
    ACCOUNT_BEGINS, ACCOUNT_ENDS, BLOCK_IS_ACTIVE, BLOCK_IS_ALLOCATED, BLOCK_STATE, HOST_ALLOCATE, HOST_ANNOTATE,
    HOST_FREE, HOST_FREE_COMPLETED, HOST_FREE_REQUESTED, HOST_OUT_OF_MEMORY, HOST_PRESENT, HOST_SNAPSHOT, HOST_STATE,
    POOL_OF_GRAPH, SEGMENT, SEGMENT_FREE, SEGMENT_GROWS, SEGMENT_IS_LARGE, SEGMENT_MAP, SEGMENT_PRESENT, SEGMENT_STATE,
    SEGMENT_UNMAP,
};
pub use instants::{INSTANT, INSTANT_WITH};
pub use mappings::MUNMAP;
pub use phases::{
    BEGIN, BEGIN_AT, BEGIN_CODE, BEGIN_RUN, BEGIN_WITH, END, END_FAILED, END_LEFT_OPEN, END_WITH, STILL_OPEN, TIMING,
    UNMATCHED_POP,
};
pub use samples::SAMPLE;
pub use usage::{MEMORY_SIZES, MEMORY_TOTAL, MEMORY_USAGE};

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
