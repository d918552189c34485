//! The last complete snapshot of a recording.

use stackweave_heap::{CallSite, Figures, Totals};
use stackweave_recording::events::{self, Decoder, Event, Usage, UsageRow};
use stackweave_recording::file::Dictionary;
use stackweave_recording::{ProcessRecording, ReadError};

use super::labels::frame_name;
use super::packed_rows::PackedRows;
use super::replay::CallSiteFigures;
use crate::word_hash::WordSet;

/// The memory of the process and of each device at the end of a recording, or when it was last written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    number: u64,
    /// The allocators and tags of call sites are numbers of frames.
    rows: PackedRows,
    /// The devices of the rows, and their allocators.
    devices: Vec<i64>,
    allocators: WordSet<u32>,
    sizes: Vec<(i64, u64, Figures)>,
    totals: Vec<(i64, Totals)>,
    /// The frame of the allocator for memory from before the recording.
    present: Option<u32>,
}

impl Snapshot {
    /// Returns the devices with memory, the heap first.
    pub(crate) fn devices(&self) -> Vec<i64> {
        let mut devices: Vec<i64> = self.totals.iter().map(|(device, _)| *device).collect();
        devices.sort_unstable();
        devices
    }

    pub(crate) fn totals(&self, device: i64) -> Totals {
        self.totals.iter().find(|(of, _)| *of == device).map(|(_, totals)| *totals).unwrap_or_default()
    }

    pub(crate) fn rows(&self, device: i64) -> impl Iterator<Item = CallSiteFigures> {
        let row = |(_, site, figures): (i64, CallSite, Figures)| {
            let is_leaked = self.present != Some(site.allocator);
            let (leaked_blocks, leaked_bytes) =
                if is_leaked { (figures.live_blocks, figures.live_bytes) } else { (0, 0) };
            CallSiteFigures { site, figures, leaked_blocks, leaked_bytes }
        };
        self.rows.iter().filter(move |(of, ..)| *of == device).map(row)
    }

    pub(crate) fn sizes(&self, device: i64) -> impl Iterator<Item = (u64, Figures)> {
        self.sizes.iter().filter(move |(of, ..)| *of == device).map(|(_, most, figures)| (*most, *figures))
    }

    fn add_row(&mut self, device: i64, site: &CallSite, figures: &Figures) {
        self.rows.push(device, site, figures);
        self.allocators.insert(site.allocator);
        if !self.devices.contains(&device) {
            self.devices.push(device);
        }
    }

    fn present_allocator(&self, dictionary: &Dictionary) -> Option<u32> {
        let is_present = |frame: &u32| frame_name(dictionary, *frame) == Some(&*events::HOST_PRESENT.name);
        self.allocators.iter().copied().filter(is_present).min()
    }

    fn has(&self, device: i64) -> bool {
        self.totals.iter().any(|(of, _)| *of == device)
    }

    /// Returns whether each device has its totals: those of its rows, and those of the snapshot before.
    fn is_complete(&self, before: Option<&Self>) -> bool {
        let earlier = before.into_iter().flat_map(|before| before.totals.iter().map(|(device, _)| *device));
        !self.totals.is_empty() && self.devices.iter().copied().chain(earlier).all(|device| self.has(device))
    }
}

/// Reads the last complete snapshot of a process from the events of all threads.
pub(super) fn read_any_snapshot(process: &ProcessRecording) -> Result<Option<Snapshot>, ReadError> {
    let decoder = Decoder::of(process.dictionary());
    let mut order = process.in_time_order(None, None);
    let mut reading = SnapshotReader::default();
    while let Some(timed) = order.next_event()? {
        if let Event::Usage(usage) = decoder.decode(&timed.event) {
            reading.add(timed.event.ticks, &usage);
        }
    }
    Ok(reading.finish(process.dictionary()))
}

/// Finds the last complete snapshot among the events of a recorder, which are added in the order of time.
#[derive(Debug, Default)]
pub(super) struct SnapshotReader {
    whole: Option<Snapshot>,
    open: Option<Snapshot>,
}

impl SnapshotReader {
    pub(super) fn add(&mut self, ticks: u64, usage: &Usage) {
        if usage.row == UsageRow::Other {
            return;
        }
        if self.open.as_ref().is_none_or(|open| open.number != usage.snapshot) {
            self.close();
            self.open = Some(Snapshot { number: usage.snapshot, ..Snapshot::default() });
        }
        let Some(open) = &mut self.open else { return };
        let Usage { stack, allocator, device, figures, .. } = *usage;
        match usage.row {
            UsageRow::Site { thread, tag } => {
                open.add_row(device, &CallSite { stack, thread, allocator, tag }, &figures);
            }
            UsageRow::Sizes { most } => open.sizes.push((device, most, figures)),
            UsageRow::Total { peak_ago, frees, unknown_frees, replaced } => {
                let peak_ticks = ticks.saturating_sub(peak_ago);
                open.totals.retain(|(of, _)| *of != device);
                open.totals.push((device, Totals { figures, peak_ticks, frees, unknown_frees, replaced }));
            }
            UsageRow::Other => {}
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take().filter(|open| open.is_complete(self.whole.as_ref())) {
            self.whole = Some(open);
        }
    }

    pub(super) fn finish(mut self, dictionary: &Dictionary) -> Option<Snapshot> {
        self.close();
        self.whole.map(|whole| Snapshot { present: whole.present_allocator(dictionary), ..whole })
    }
}
