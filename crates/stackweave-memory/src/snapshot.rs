//! The state of the ledgers at one moment, for queries and for the recording.

use std::time::{Duration, Instant};

use stackweave_core::{RawFrame, StackId};
use stackweave_heap::{Figures, Totals};
use stackweave_recording::{KindNumber, Notes};

use crate::device_ledgers::DeviceLedgers;

/// The memory that was live at one moment, and at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySnapshot {
    /// The time, in ticks.
    pub ticks: u64,
    /// The process's own memory first, then a host's devices in the order in which they were seen.
    pub devices: Vec<DeviceSnapshot>,
}

/// The memory of the process, or of one device of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSnapshot {
    /// The number of the device; [`EventKind::OWN_DEVICE`](stackweave_core::EventKind::OWN_DEVICE) is the process.
    pub device: i64,
    /// The sums over all sites.
    pub totals: Totals,
    /// The time from the peak to the snapshot.
    pub peak_ago: Duration,
    /// The figures of each allocation site.
    pub rows: Vec<SnapshotRow>,
    /// The figures of each size class, by its largest size: blocks of more than half that size.
    pub sizes: Vec<(u64, Figures)>,
}

/// The figures of one allocation site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRow {
    /// The stack that allocated.
    pub stack: Option<StackId>,
    /// The label of the allocator.
    pub allocator: Option<RawFrame>,
    /// The label of the tag that the thread had.
    pub tag: Option<RawFrame>,
    /// The thread, by its number in the recording.
    pub thread: u32,
    /// The figures.
    pub figures: Figures,
}

/// A live block and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockOrigin {
    /// The address.
    pub address: u64,
    /// The size in bytes.
    pub size: u64,
    /// The device that it is on.
    pub device: i64,
    /// The stack that allocated it.
    pub stack: Option<StackId>,
    /// The label of the allocator.
    pub allocator: Option<RawFrame>,
    /// The label of the tag that the thread had.
    pub tag: Option<RawFrame>,
    /// The thread, by its number in the recording.
    pub thread: u32,
}

/// The kinds of the events of a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotKinds {
    pub(crate) usage: KindNumber,
    pub(crate) sizes: KindNumber,
    pub(crate) total: KindNumber,
}

/// The number of rows that are written at once: 480 KiB of words.
const PART_ROWS: usize = 4096;

/// Writes a snapshot as events, in parts: all rows of a program with millions of stacks would take hundreds of
/// megabytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotWriter {
    pub(crate) ticks: u64,
    /// The number of the snapshot in the recording.
    pub(crate) number: u64,
    pub(crate) kinds: SnapshotKinds,
    /// The time at which the first part was written.
    pub(crate) began: Instant,
    /// The index of the next ledger, and of the next site in it.
    ledger: usize,
    place: usize,
}

impl SnapshotWriter {
    pub(crate) fn new(ticks: u64, number: u64, kinds: SnapshotKinds) -> Self {
        Self { ticks, number, kinds, began: Instant::now(), ledger: 0, place: 0 }
    }

    /// Writes the next rows. Returns whether more follow. The ledgers must not change between parts.
    pub(crate) fn write_part(&mut self, ledgers: &DeviceLedgers, notes: &mut Notes) -> bool {
        let (ticks, kinds, number) = (self.ticks, self.kinds, self.number);
        while let Some(of_device) = ledgers.all.get(self.ledger) {
            let mut rows = 0;
            for (place, at, figures) in of_device.ledger.sites_from(self.place).take(PART_ROWS) {
                notes.record_at(ticks, kinds.usage, &row_words(&ledgers.row(at, figures), number, of_device.device));
                self.place = place + 1;
                rows += 1;
            }
            if rows == PART_ROWS {
                return true;
            }
            for (most, figures) in of_device.ledger.sizes() {
                notes.record_at(ticks, kinds.sizes, &size_words(most, &figures, number, of_device.device));
            }
            (self.ledger, self.place) = (self.ledger + 1, 0);
        }
        for of_device in &ledgers.all {
            let totals = total_words(&of_device.ledger.totals(), number, (ticks, of_device.device));
            notes.record_at(ticks, kinds.total, &totals);
        }
        false
    }
}

fn row_words(row: &SnapshotRow, number: u64, device: i64) -> [u64; 14] {
    let frame = |frame: Option<RawFrame>| frame.map_or(0, RawFrame::to_bits);
    let stack = row.stack.map_or(0, |stack| stack.get().into());
    let site = [stack, frame(row.allocator), frame(row.tag), number, row.thread.into(), device.cast_unsigned()];
    joined(site, &row.figures.to_array())
}

fn size_words(most: u64, of: &Figures, number: u64, device: i64) -> [u64; 9] {
    joined([number, device.cast_unsigned(), most], &of.to_array()[..6])
}

/// Returns the words of `first`, then those of `rest`, which are as many as there is room for.
fn joined<const FIRST: usize, const ALL: usize>(first: [u64; FIRST], rest: &[u64]) -> [u64; ALL] {
    let mut words = [0; ALL];
    for (word, value) in words.iter_mut().zip(first.iter().chain(rest)) {
        *word = *value;
    }
    words
}

fn total_words(totals: &Totals, number: u64, (ticks, device): (u64, i64)) -> [u64; 14] {
    let of = &totals.figures;
    [
        number,
        device.cast_unsigned(),
        ticks.saturating_sub(totals.peak_ticks),
        of.allocations,
        of.bytes,
        of.live_blocks,
        of.live_bytes,
        of.peak_blocks,
        of.peak_bytes,
        of.temporary,
        of.temporary_bytes,
        totals.frees,
        totals.unknown_frees,
        totals.replaced,
    ]
}
