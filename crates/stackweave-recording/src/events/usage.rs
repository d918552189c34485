//! Snapshots of a memory recorder: sums of events, whether these are in the recording or not.
//!
//! A snapshot is whole when its `memory-total` is there, for each device; a later one takes the place of an earlier one.

use stackweave_core::{EventKind, Field};
use stackweave_heap::Figures;

use super::declare::family;
use super::fields::{
    ALLOCATIONS, BYTES, DEVICE, FREES, LIVE_BLOCKS, LIVE_BYTES, MOST, PEAK_AGO, PEAK_BLOCKS, PEAK_BYTES, REPLACED,
    SNAPSHOT, TEMPORARY, TEMPORARY_BYTES, THREAD, UNKNOWN_FREES,
};
use super::layout::{Layout, is_called_as};

family! { "Memory snapshots" {
    /// What one place, by stack, allocator, tag and thread, has used.
    MEMORY_USAGE = "memory-usage": Usage(STACK, ALLOCATOR, TAG, SNAPSHOT, THREAD, DEVICE, ALLOCATIONS, BYTES, LIVE_BLOCKS,
        LIVE_BYTES, PEAK_BLOCKS, PEAK_BYTES, TEMPORARY, TEMPORARY_BYTES);
    /// What the blocks of one size class have used.
    MEMORY_SIZES = "memory-sizes": Usage(SNAPSHOT, DEVICE, MOST, ALLOCATIONS, BYTES, LIVE_BLOCKS, LIVE_BYTES, PEAK_BLOCKS,
        PEAK_BYTES);
    /// What a device, or the process, has used: the last event of its device in a snapshot.
    MEMORY_TOTAL = "memory-total": Usage(SNAPSHOT, DEVICE, PEAK_AGO, ALLOCATIONS, BYTES, LIVE_BLOCKS, LIVE_BYTES, PEAK_BLOCKS,
        PEAK_BYTES, TEMPORARY, TEMPORARY_BYTES, FREES, UNKNOWN_FREES, REPLACED);
} }

/// Figures of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// What they are of.
    pub row: UsageRow,
    /// The number of the stack that has allocated; 0 if none was recorded.
    pub stack: u32,
    /// The label of the allocator: the number of a frame; 0 for none.
    pub allocator: u32,
    /// The number of the snapshot.
    pub snapshot: u64,
    /// The device; [`EventKind::OWN_DEVICE`] for the process's own memory.
    pub device: i64,
    /// The figures.
    pub figures: Figures,
}

/// What figures of a snapshot are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageRow {
    /// A place: the stack and the allocator, and these.
    Place {
        /// The thread, by its number in the section.
        thread: u32,
        /// The label of the tag: the number of a frame; 0 for none.
        tag: u32,
    },
    /// A size class.
    Sizes {
        /// Its blocks are of more than half of so many bytes, and at most so many.
        most: u64,
    },
    /// A device, or the process.
    Total {
        /// How long before the event the peak was, in ticks.
        peak_ago: u64,
        /// How often memory was freed.
        frees: u64,
        /// How often memory was freed whose allocation is not known.
        unknown_frees: u64,
        /// How often a block was allocated where another one was live.
        replaced: u64,
    },
    /// Something that this reader does not know.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Place,
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

pub(super) fn row(kind: &EventKind) -> Row {
    let known = [(&MEMORY_USAGE, Row::Place), (&MEMORY_SIZES, Row::Sizes), (&MEMORY_TOTAL, Row::Total)];
    known.into_iter().find(|(known, _)| is_called_as(kind, known)).map_or(Row::Other, |(_, row)| row)
}

impl Usage {
    pub(super) fn decode(layout: &Layout, row: Row, words: &[u64]) -> Self {
        let [snapshot, device, figures @ ..] = layout.named;
        let [figures @ .., thread, most, peak_ago, frees, unknown_frees, replaced] = figures;
        let [allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes] =
            figures.map(|slot| slot.word(words));
        let row = match row {
            Row::Place => UsageRow::Place { thread: thread.number(words), tag: layout.tag.number(words) },
            Row::Sizes => UsageRow::Sizes { most: most.word(words) },
            Row::Total => UsageRow::Total {
                peak_ago: peak_ago.word(words),
                frees: frees.word(words),
                unknown_frees: unknown_frees.word(words),
                replaced: replaced.word(words),
            },
            Row::Other => UsageRow::Other,
        };
        Self {
            row,
            stack: layout.stack.number(words),
            allocator: layout.frame.number(words),
            snapshot: snapshot.word(words),
            device: device.device(words),
            figures: Figures {
                allocations,
                bytes,
                live_blocks,
                live_bytes,
                peak_blocks,
                peak_bytes,
                temporary,
                temporary_bytes,
            },
        }
    }
}
