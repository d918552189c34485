//! The last complete snapshot of a recording.

use std::collections::BTreeSet;

use stackweave_heap::{CallSite, Figures, Totals};
use stackweave_recording::events::{self, Decoder, Event, Usage, UsageRow};
use stackweave_recording::file::Dictionary;
use stackweave_recording::{ProcessRecording, ReadError};

use super::labels::frame_name;
use super::replay::CallSiteFigures;

/// The thread that events of recorders themselves are assigned to.
pub(super) const RECORDER_THREAD: &str = "stackweave";

/// The memory of the process and of each device at the end of a recording, or when it was last written. Its call sites,
/// of which a program has millions, stay in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The threads with its events; `None` for all.
    threads: Option<Vec<u32>>,
    /// How many snapshots the events of these threads have before it.
    index: usize,
    sizes: Vec<(i64, u64, Figures)>,
    totals: Vec<(i64, Totals)>,
    /// The devices of call sites.
    devices: BTreeSet<i64>,
    /// The allocators of call sites: numbers of frames.
    allocators: BTreeSet<u32>,
}

impl Snapshot {
    /// Returns the totals of devices with memory, the heap first.
    pub(crate) fn totals(&self) -> &[(i64, Totals)] {
        &self.totals
    }

    /// Calls `site` with the device and the figures of each call site. Its allocator and tag are numbers of frames.
    pub(crate) fn visit_sites(
        &self,
        process: &ProcessRecording,
        site: &mut dyn FnMut(i64, &CallSiteFigures),
    ) -> Result<(), ReadError> {
        let present = self.present_allocator(process.dictionary());
        visit(process, self.threads.as_deref(), &mut |index, _, usage| {
            let &Usage { row: UsageRow::Site { thread, tag }, stack, allocator, device, figures, .. } = usage else {
                return;
            };
            if index == self.index {
                let is_leaked = present != Some(allocator);
                let (leaked_blocks, leaked_bytes) =
                    if is_leaked { (figures.live_blocks, figures.live_bytes) } else { (0, 0) };
                let of = CallSite { stack, thread, allocator, tag };
                site(device, &CallSiteFigures { site: of, figures, leaked_blocks, leaked_bytes });
            }
        })
    }

    pub(crate) fn sizes(&self, device: i64) -> impl Iterator<Item = (u64, Figures)> {
        self.sizes.iter().filter(move |(of, ..)| *of == device).map(|(_, most, figures)| (*most, *figures))
    }

    /// Returns the frame of the allocator for memory from before the recording.
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

    fn add(&mut self, ticks: u64, usage: &Usage) {
        let Usage { allocator, device, figures, .. } = *usage;
        match usage.row {
            UsageRow::Site { .. } => {
                self.devices.insert(device);
                self.allocators.insert(allocator);
            }
            UsageRow::Sizes { most } => self.sizes.push((device, most, figures)),
            UsageRow::Total { peak_ago, frees, unknown_frees, replaced } => {
                let peak_ticks = ticks.saturating_sub(peak_ago);
                self.totals.retain(|(of, _)| *of != device);
                self.totals.push((device, Totals { figures, peak_ticks, frees, unknown_frees, replaced }));
            }
            UsageRow::Other => {}
        }
    }
}

/// Reads the last complete snapshot of a process, if there is one. If the recorder's own thread has snapshots, only its
/// events are read.
pub(crate) fn read_snapshot(process: &ProcessRecording) -> Result<Option<Snapshot>, ReadError> {
    if !process.dictionary().declares(&events::MEMORY_TOTAL) {
        return Ok(None);
    }
    match read_threads(process, Some(recorder_threads(process)))? {
        Some(found) => Ok(Some(found)),
        None => read_threads(process, None),
    }
}

/// Returns the threads of events of the recorder itself.
pub(super) fn recorder_threads(process: &ProcessRecording) -> Vec<u32> {
    let threads = process.dictionary().threads().filter(|thread| thread.name == RECORDER_THREAD);
    threads.map(|thread| thread.number).collect()
}

fn read_threads(process: &ProcessRecording, threads: Option<Vec<u32>>) -> Result<Option<Snapshot>, ReadError> {
    let (mut whole, mut open) = (None, Snapshot::default());
    visit(process, threads.as_deref(), &mut |index, ticks, usage| {
        if open.index != index {
            let ended = core::mem::replace(&mut open, Snapshot { index, ..Snapshot::default() });
            take_complete(&mut whole, ended);
        }
        open.add(ticks, usage);
    })?;
    take_complete(&mut whole, open);
    Ok(whole.map(|mut whole| {
        whole.totals.sort_unstable_by_key(|(device, _)| *device);
        Snapshot { threads, ..whole }
    }))
}

fn take_complete(whole: &mut Option<Snapshot>, ended: Snapshot) {
    if ended.is_complete(whole.as_ref()) {
        *whole = Some(ended);
    }
}

/// Calls `row` with the index, the ticks and the row of each snapshot.
fn visit(
    process: &ProcessRecording,
    threads: Option<&[u32]>,
    row: &mut dyn FnMut(usize, u64, &Usage),
) -> Result<(), ReadError> {
    let decoder = Decoder::of(process.dictionary());
    let mut order = process.in_time_order(None, threads);
    let (mut index, mut number) = (0, None);
    while let Some(timed) = order.next_event()? {
        if let Event::Usage(usage) = decoder.decode(&timed.event)
            && usage.row != UsageRow::Other
        {
            index += usize::from(number.is_some_and(|number| number != usage.snapshot));
            number = Some(usage.snapshot);
            row(index, timed.event.ticks, &usage);
        }
    }
    Ok(())
}
