//! What a ledger knows at one moment, for who asks and for the recording.

use std::time::{Duration, Instant};

use stackweave_core::{RawFrame, StackId};
use stackweave_heap::{Figures, Totals};
use stackweave_recording::{KindNumber, Notes};

use crate::books::Books;

/// What memory is used, and was at the peak, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When.
    pub ticks: u64,
    /// The process's own memory first, then a host's devices in the order in which they were seen.
    pub devices: Vec<DeviceSnapshot>,
}

/// The memory of the process, or of one device of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSnapshot {
    /// Its number; [`EventKind::OWN_DEVICE`](stackweave_core::EventKind::OWN_DEVICE) is the process.
    pub device: i64,
    /// The sums.
    pub totals: Totals,
    /// How long before the snapshot the peak was.
    pub peak_ago: Duration,
    /// What each place has used.
    pub rows: Vec<UsageRow>,
    /// What blocks of each size class have used: of more than half of this size, and at most of it.
    pub sizes: Vec<(u64, Figures)>,
}

/// What one place has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Where memory was taken.
    pub stack: Option<StackId>,
    /// The label of what took it.
    pub allocator: Option<RawFrame>,
    /// The label of the tag that the thread had.
    pub tag: Option<RawFrame>,
    /// The thread, by its number in the recording.
    pub thread: u32,
    /// How much.
    pub figures: Figures,
}

/// A live block, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockOrigin {
    /// Where it begins.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// The device that it is of.
    pub device: i64,
    /// Where it was taken.
    pub stack: Option<StackId>,
    /// The label of what took it.
    pub allocator: Option<RawFrame>,
    /// The label of the tag that the thread had.
    pub tag: Option<RawFrame>,
    /// The thread, by its number in the recording.
    pub thread: u32,
}

/// The kinds that a snapshot is written with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotKinds {
    pub(crate) usage: KindNumber,
    pub(crate) sizes: KindNumber,
    pub(crate) total: KindNumber,
}

/// So many rows are written at once: 480 KiB of words.
const PART: usize = 4096;

/// Writes a snapshot as events, in parts: all rows of a program with millions of stacks take hundreds of megabytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotWriter {
    pub(crate) ticks: u64,
    /// Its number among the snapshots of the recording.
    pub(crate) number: u64,
    pub(crate) kinds: SnapshotKinds,
    /// When the first part was written.
    pub(crate) began: Instant,
    /// The book that comes next, and the number of the place in it.
    book: usize,
    place: usize,
}

impl SnapshotWriter {
    pub(crate) fn new(ticks: u64, number: u64, kinds: SnapshotKinds) -> Self {
        Self { ticks, number, kinds, began: Instant::now(), book: 0, place: 0 }
    }

    /// Writes the next rows. Returns whether there are more. Nothing may be entered into the books in between.
    pub(crate) fn write_part(&mut self, books: &Books, notes: &mut Notes) -> bool {
        let (ticks, kinds, number) = (self.ticks, self.kinds, self.number);
        while let Some(book) = books.all.get(self.book) {
            let mut rows = 0;
            for (place, at, figures) in book.ledger.places_from(self.place).take(PART) {
                notes.record_at(ticks, kinds.usage, &row_words(&books.row(at, figures), number, book.device));
                self.place = place + 1;
                rows += 1;
            }
            if rows == PART {
                return true;
            }
            for (most, figures) in book.ledger.sizes() {
                notes.record_at(ticks, kinds.sizes, &size_words(most, &figures, number, book.device));
            }
            (self.book, self.place) = (self.book + 1, 0);
        }
        for book in &books.all {
            notes.record_at(ticks, kinds.total, &total_words(&book.ledger.totals(), number, (ticks, book.device)));
        }
        false
    }
}

fn row_words(row: &UsageRow, number: u64, device: i64) -> [u64; 14] {
    let of = &row.figures;
    let frame = |frame: Option<RawFrame>| frame.map_or(0, RawFrame::to_bits);
    [
        row.stack.map_or(0, |stack| stack.get().into()),
        frame(row.allocator),
        frame(row.tag),
        number,
        row.thread.into(),
        device.cast_unsigned(),
        of.allocations,
        of.bytes,
        of.live_blocks,
        of.live_bytes,
        of.peak_blocks,
        of.peak_bytes,
        of.temporary,
        of.temporary_bytes,
    ]
}

fn size_words(most: u64, of: &Figures, number: u64, device: i64) -> [u64; 9] {
    let (device, peak) = (device.cast_unsigned(), [of.peak_blocks, of.peak_bytes]);
    [number, device, most, of.allocations, of.bytes, of.live_blocks, of.live_bytes, peak[0], peak[1]]
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
