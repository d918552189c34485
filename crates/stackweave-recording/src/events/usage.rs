//! Snapshots of a memory recorder: sums of events, whether these are in the recording or not.
//!
//! A snapshot is complete if it has a `memory-total` for each device. A later snapshot replaces an earlier one.

use stackweave_core::{EventKind, Field};
use stackweave_heap::Figures;

use super::declare::family;
use super::fields::{
    ALLOCATIONS, BYTES, DEVICE, FREES, LIVE_BLOCKS, LIVE_BYTES, MOST, PEAK_AGO, PEAK_BLOCKS, PEAK_BYTES, REPLACED,
    SNAPSHOT, TEMPORARY, TEMPORARY_BYTES, THREAD, UNKNOWN_FREES,
};
use super::layout::{EventLayout, is_called_as};

family! { "Memory snapshots" {
    /// The usage of one site: a stack, allocator, tag and thread.
    MEMORY_USAGE = "memory-usage": Usage(STACK, ALLOCATOR, TAG, SNAPSHOT, THREAD, DEVICE, ALLOCATIONS, BYTES, LIVE_BLOCKS,
        LIVE_BYTES, PEAK_BLOCKS, PEAK_BYTES, TEMPORARY, TEMPORARY_BYTES);
    /// The usage of the blocks of one size class.
    MEMORY_SIZES = "memory-sizes": Usage(SNAPSHOT, DEVICE, MOST, ALLOCATIONS, BYTES, LIVE_BLOCKS, LIVE_BYTES, PEAK_BLOCKS,
        PEAK_BYTES);
    /// The usage of a device, or of the process: the last event of its device in a snapshot.
    MEMORY_TOTAL = "memory-total": Usage(SNAPSHOT, DEVICE, PEAK_AGO, ALLOCATIONS, BYTES, LIVE_BLOCKS, LIVE_BYTES, PEAK_BLOCKS,
        PEAK_BYTES, TEMPORARY, TEMPORARY_BYTES, FREES, UNKNOWN_FREES, REPLACED);
} }

/// A row of figures in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The subject of the figures.
    pub row: UsageSubject,
    /// The number of the allocating stack; 0 if none was recorded.
    pub stack: u32,
    /// The number of a frame: the label of the allocator; 0 for none.
    pub allocator: u32,
    /// The number of the snapshot.
    pub snapshot: u64,
    /// The device; [`EventKind::OWN_DEVICE`] for the process's own memory.
    pub device: i64,
    /// The figures.
    pub figures: Figures,
}

/// The subject of a row of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageSubject {
    /// An allocation site: the row's stack and allocator, and these.
    Site {
        /// The thread, by its number in the section.
        thread: u32,
        /// The number of a frame: the label of the tag; 0 for none.
        tag: u32,
    },
    /// A size class.
    Sizes {
        /// The size of its largest blocks. The others have more than half of it.
        most: u64,
    },
    /// A device, or the process.
    Total {
        /// The time from the peak to the event, in ticks.
        peak_ago: u64,
        /// The number of frees.
        frees: u64,
        /// The number of frees of blocks whose allocation is unknown.
        unknown_frees: u64,
        /// The number of allocations at an address with a live block.
        replaced: u64,
    },
    /// A row of a kind that this version does not know.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsageRowKind {
    Site,
    Sizes,
    Total,
    Other,
}

pub(super) const FIELDS: &[Field] = &[
    SNAPSHOT,
    DEVICE,
    ALLOCATIONS,
    BYTES,
    LIVE_BLOCKS,
    LIVE_BYTES,
    PEAK_BLOCKS,
    PEAK_BYTES,
    TEMPORARY,
    TEMPORARY_BYTES,
    THREAD,
    MOST,
    PEAK_AGO,
    FREES,
    UNKNOWN_FREES,
    REPLACED,
];

pub(super) fn row(kind: &EventKind) -> UsageRowKind {
    let known = [
        (&MEMORY_USAGE, UsageRowKind::Site),
        (&MEMORY_SIZES, UsageRowKind::Sizes),
        (&MEMORY_TOTAL, UsageRowKind::Total),
    ];
    known.into_iter().find(|(known, _)| is_called_as(kind, known)).map_or(UsageRowKind::Other, |(_, row)| row)
}

impl Usage {
    pub(super) fn decode(layout: &EventLayout, row: UsageRowKind, words: &[u64]) -> Self {
        let [snapshot, device, figures @ ..] = layout.named;
        let [figures @ .., thread, most, peak_ago, frees, unknown_frees, replaced] = figures;
        let row = match row {
            UsageRowKind::Site => UsageSubject::Site { thread: thread.number(words), tag: layout.tag.number(words) },
            UsageRowKind::Sizes => UsageSubject::Sizes { most: most.word(words) },
            UsageRowKind::Total => UsageSubject::Total {
                peak_ago: peak_ago.word(words),
                frees: frees.word(words),
                unknown_frees: unknown_frees.word(words),
                replaced: replaced.word(words),
            },
            UsageRowKind::Other => UsageSubject::Other,
        };
        Self {
            row,
            stack: layout.stack.number(words),
            allocator: layout.frame.number(words),
            snapshot: snapshot.word(words),
            device: device.device(words),
            figures: Figures::from_array(figures.map(|slot| slot.word(words))),
        }
    }
}
