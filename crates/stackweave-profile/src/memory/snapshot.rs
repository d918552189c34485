//! The last complete snapshot of a recording.

use stackweave_heap::{CallSite, Figures, Totals};
use stackweave_recording::events::{self, Decoder, Event, Usage, UsageRow};
use stackweave_recording::file::Dictionary;
use stackweave_recording::{ProcessRecording, ReadError};

use super::labels::frame_name;
use super::replay::CallSiteFigures;

/// The thread that events of recorders themselves are assigned to.
pub(super) const RECORDER_THREAD: &str = "stackweave";

/// The memory of the process and of each device at the end of a recording, or when it was last written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    number: u64,
    /// The allocators and tags of call sites are numbers of frames.
    rows: Vec<(i64, CallSite, Figures)>,
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
        let row = |(_, site, figures): &(i64, CallSite, Figures)| {
            let (site, figures) = (*site, *figures);
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

    fn present_allocator(&self, dictionary: &Dictionary) -> Option<u32> {
        let mut allocators: Vec<u32> = self.rows.iter().map(|(_, site, _)| site.allocator).collect();
        allocators.sort_unstable();
        allocators.dedup();
        allocators.into_iter().find(|frame| frame_name(dictionary, *frame) == Some(&*events::HOST_PRESENT.name))
    }

    fn has(&self, device: i64) -> bool {
        self.totals.iter().any(|(of, _)| *of == device)
    }

    /// Returns whether each device has its totals: those of its rows, and those of the snapshot before.
    fn is_complete(&self, before: Option<&Self>) -> bool {
        let earlier = before.into_iter().flat_map(|before| before.totals.iter().map(|(device, _)| *device));
        !self.totals.is_empty() && self.rows.iter().map(|row| row.0).chain(earlier).all(|device| self.has(device))
    }
}

/// Reads the last complete snapshot of a process, if there is one. If the recorder's own thread has snapshots, only its
/// events are read.
pub(crate) fn read_snapshot(process: &ProcessRecording) -> Result<Option<Snapshot>, ReadError> {
    if !process.dictionary().declares(&events::MEMORY_TOTAL) {
        return Ok(None);
    }
    let decoder = Decoder::of(process.dictionary());
    let own = recorder_threads(process);
    let found = match read_threads(process, &decoder, Some(&own))? {
        Some(found) => Some(found),
        None => read_threads(process, &decoder, None)?,
    };
    Ok(found.map(|found| Snapshot { present: found.present_allocator(process.dictionary()), ..found }))
}

/// Returns the threads of events of the recorder itself.
pub(super) fn recorder_threads(process: &ProcessRecording) -> Vec<u32> {
    let threads = process.dictionary().threads().filter(|thread| thread.name == RECORDER_THREAD);
    threads.map(|thread| thread.number).collect()
}

fn read_threads(
    process: &ProcessRecording,
    decoder: &Decoder,
    threads: Option<&[u32]>,
) -> Result<Option<Snapshot>, ReadError> {
    let mut order = process.in_time_order(None, threads);
    let mut reading = SnapshotReader::default();
    while let Some(timed) = order.next_event()? {
        if let Event::Usage(usage) = decoder.decode(&timed.event)
            && usage.row != UsageRow::Other
        {
            reading.add(timed.event.ticks, &usage);
        }
    }
    Ok(reading.finish())
}

#[derive(Debug, Default)]
struct SnapshotReader {
    whole: Option<Snapshot>,
    open: Option<Snapshot>,
}

impl SnapshotReader {
    fn add(&mut self, ticks: u64, usage: &Usage) {
        if self.open.as_ref().is_none_or(|open| open.number != usage.snapshot) {
            self.close();
            self.open = Some(Snapshot { number: usage.snapshot, ..Snapshot::default() });
        }
        let Some(open) = &mut self.open else { return };
        let Usage { stack, allocator, device, figures, .. } = *usage;
        match usage.row {
            UsageRow::Site { thread, tag } => {
                open.rows.push((device, CallSite { stack, thread, allocator, tag }, figures));
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

    fn finish(mut self) -> Option<Snapshot> {
        self.close();
        self.whole
    }
}
