//! The last complete snapshot of a recording.

use std::collections::BTreeSet;

use stackweave_heap::{CallSite, Figures, Totals};
use stackweave_recording::events::{self, Decoder, Event, Usage, UsageSubject};
use stackweave_recording::file::Dictionary;
use stackweave_recording::{ProcessRecording, ReadError};

use super::labels::frame_name;
use super::packed_rows::PackedRows;
use super::replay::CallSiteFigures;

/// The memory of the process and of each device at the end of a recording, or when it was last written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedSnapshot {
    number: u64,
    rows: PackedRows,
    sizes: Vec<(i64, u64, Figures)>,
    totals: Vec<(i64, Totals)>,
    /// The devices of call sites.
    devices: BTreeSet<i64>,
    /// The allocators of call sites: numbers of frames.
    allocators: BTreeSet<u32>,
    /// The one of memory from before the recording.
    present: Option<u32>,
}

impl RecordedSnapshot {
    /// Returns the totals of devices with memory, the heap first.
    pub(crate) fn totals(&self) -> &[(i64, Totals)] {
        &self.totals
    }

    /// Calls `site` with the device and the figures of each call site. Its allocator and tag are numbers of frames.
    pub(crate) fn visit_sites(&self, site: &mut dyn FnMut(i64, &CallSiteFigures)) {
        for (device, of, figures) in self.rows.iter() {
            let is_leaked = self.present != Some(of.allocator);
            let (leaked_blocks, leaked_bytes) =
                if is_leaked { (figures.live_blocks, figures.live_bytes) } else { (0, 0) };
            site(device, &CallSiteFigures { site: of, figures, leaked_blocks, leaked_bytes });
        }
    }

    pub(crate) fn sizes(&self, device: i64) -> impl Iterator<Item = (u64, Figures)> {
        self.sizes.iter().filter(move |(of, ..)| *of == device).map(|(_, most, figures)| (*most, *figures))
    }

    fn add(&mut self, ticks: u64, usage: &Usage) {
        let Usage { stack, allocator, device, figures, .. } = *usage;
        match usage.row {
            UsageSubject::Site { thread, tag } => {
                self.rows.push(device, &CallSite { stack, thread, allocator, tag }, &figures);
                self.devices.insert(device);
                self.allocators.insert(allocator);
            }
            UsageSubject::Sizes { most } => self.sizes.push((device, most, figures)),
            UsageSubject::Total { peak_ago, frees, unknown_frees, replaced } => {
                let peak_ticks = ticks.saturating_sub(peak_ago);
                self.totals.retain(|(of, _)| *of != device);
                self.totals.push((device, Totals { figures, peak_ticks, frees, unknown_frees, replaced }));
            }
            UsageSubject::Other => {}
        }
    }

    fn present_allocator(&self, dictionary: &Dictionary) -> Option<u32> {
        let is_present = |frame: &u32| frame_name(dictionary, *frame) == Some(&*events::HOST_PRESENT.name);
        self.allocators.iter().copied().find(is_present)
    }

    /// Returns whether each device has its totals: those of its call sites, and those of the snapshot before.
    fn is_complete(&self, before: Option<&Self>) -> bool {
        let earlier = before.into_iter().flat_map(|before| before.totals.iter().map(|(device, _)| device));
        let has = |device: &i64| self.totals.iter().any(|(of, _)| of == device);
        !self.totals.is_empty() && self.devices.iter().chain(earlier).all(has)
    }

    fn finished(mut self, dictionary: &Dictionary) -> Self {
        self.totals.sort_unstable_by_key(|(device, _)| *device);
        Self { present: self.present_allocator(dictionary), ..self }
    }
}

/// Reads the last complete snapshot of a process from the events of all threads.
pub(super) fn read_any_snapshot(process: &ProcessRecording) -> Result<Option<RecordedSnapshot>, ReadError> {
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
    whole: Option<RecordedSnapshot>,
    open: Option<RecordedSnapshot>,
}

impl SnapshotReader {
    pub(super) fn add(&mut self, ticks: u64, usage: &Usage) {
        if usage.row == UsageSubject::Other {
            return;
        }
        if self.open.as_ref().is_none_or(|open| open.number != usage.snapshot) {
            self.close();
        }
        let new = || RecordedSnapshot { number: usage.snapshot, ..RecordedSnapshot::default() };
        self.open.get_or_insert_with(new).add(ticks, usage);
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take().filter(|open| open.is_complete(self.whole.as_ref())) {
            self.whole = Some(open);
        }
    }

    pub(super) fn finish(mut self, dictionary: &Dictionary) -> Option<RecordedSnapshot> {
        self.close();
        self.whole.map(|whole| whole.finished(dictionary))
    }
}
