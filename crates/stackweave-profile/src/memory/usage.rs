//! The memory of a process, by call site.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use stackweave_core::EventKind;
use stackweave_heap::{CallSite, Figures, Totals};
use stackweave_recording::events::{self, Decoder};
use stackweave_recording::file::RecordingMode;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use super::figures::add;
use super::foreign_hooks::ForeignHooks;
use super::header::{MemoryHeader, MemoryMode};
use super::labels::Labels;
use super::query::MemoryQuery;
use super::recorder_thread::RecorderThread;
use super::replay::{CallSiteFigures, Replay, Replayed};
use super::snapshot::Snapshot;

/// The source of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UsageSource {
    /// The recorder's snapshot.
    Snapshot,
    /// A replay of the events.
    Replayed,
}

impl UsageSource {
    /// Returns the name of the source.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Replayed => "replayed",
        }
    }
}

/// The memory of a process.
#[derive(Clone, Debug)]
pub struct MemoryUsage {
    /// The source of the figures.
    pub source: UsageSource,
    /// The settings of the recorder; `None` if there was no memory recorder, and the program recorded its allocations
    /// itself.
    pub header: Option<MemoryHeader>,
    /// The heap first, then each device. Devices that are not selected are left out.
    pub devices: Vec<DeviceUsage>,
    /// The names of allocators, by the numbers in rows; 0 is none.
    pub allocators: Vec<Arc<str>>,
    /// The names of tags; 0 is none.
    pub tags: Vec<Arc<str>>,
    /// Remarks about the figures, one sentence each.
    pub remarks: Vec<String>,
    /// The data that could not be read.
    pub missing: Missing,
}

/// The memory of a device, or the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUsage {
    /// The device; [`EventKind::OWN_DEVICE`] for the heap.
    pub device: i64,
    /// The sums of all rows, and the time of the peak.
    pub totals: Totals,
    /// Whether it has allocations, by any thread and with any tag.
    pub is_used: bool,
    /// Whether the peak of the time range is at its start; otherwise the peak's ticks are its time.
    pub is_peak_at_start: bool,
    /// The call sites, sorted and without duplicates.
    pub rows: Vec<UsageRow>,
    /// By size: each row is for blocks up to its size, and larger than half of it. Of all threads and tags; empty if
    /// only some of these are selected.
    pub sizes: Vec<(u64, Figures)>,
}

/// The memory of a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The number of its stack in the recording; 0 if none was recorded.
    pub stack: u32,
    /// The number of the thread in the recording.
    pub thread: u32,
    /// The index in [`MemoryUsage::allocators`].
    pub allocator: u32,
    /// The index in [`MemoryUsage::tags`]; 0 without a tag.
    pub tag: u32,
    /// The figures.
    pub figures: Figures,
    /// Blocks that were allocated in the selected time, and are live at its end. Blocks from before the recording do
    /// not count.
    pub leaked_blocks: u64,
    /// Their bytes.
    pub leaked_bytes: u64,
}

impl MemoryUsage {
    /// Returns the memory of a device, or the heap.
    pub fn device(&self, device: i64) -> Option<&DeviceUsage> {
        self.devices.iter().find(|usage| usage.device == device)
    }

    /// Returns whether a row has blocks from before the recording.
    pub fn is_from_before(&self, row: &UsageRow) -> bool {
        self.allocators.get(row.allocator as usize).is_some_and(|allocator| **allocator == *events::HOST_PRESENT.name)
    }

    /// Returns how many bytes one sampled allocation stands for. All figures are then estimates.
    pub fn sample_every(&self) -> Option<u64> {
        self.header.and_then(|header| header.sample_every)
    }
}

/// Reads the memory of a process: of the whole recording from its last snapshot; of a time range, or of a recording
/// without a snapshot, by replaying its events. `progress` is called with the bytes that have been read.
pub fn read_usage(
    process: &ProcessRecording,
    query: &MemoryQuery,
    progress: &mut dyn FnMut(u64),
) -> Result<MemoryUsage, ReadError> {
    usage_with(process, &RecorderThread::read(process)?, query, progress)
}

/// Reads the same with what the recorder has written.
pub(super) fn usage_with(
    process: &ProcessRecording,
    recorder: &RecorderThread,
    query: &MemoryQuery,
    progress: &mut dyn FnMut(u64),
) -> Result<MemoryUsage, ReadError> {
    let header = MemoryHeader::of(process.start());
    let mut builder = UsageBuilder::new((process, recorder.hooks.as_ref()), query, header);
    if let Some(snapshot) = usable_snapshot(process, recorder, query, header)? {
        builder.take_snapshot(&snapshot);
        progress(process.bytes());
        if header.is_some_and(|header| header.mode == MemoryMode::Aggregate) && query.range.is_some() {
            builder.usage.remarks.push(
                "Only totals of memory were recorded, without a history: they are of the whole recording.".to_owned(),
            );
        }
        return Ok(builder.finish());
    }
    let (replayed, missing) = replay(process, query, progress)?;
    builder.usage.missing = missing;
    Ok(builder.replayed(replayed))
}

/// Returns the memory of a process, as far as its replay has come.
pub(crate) fn usage_so_far(process: &ProcessRecording, replay: &Replay) -> MemoryUsage {
    let query = MemoryQuery::default();
    let hooks = ForeignHooks::read(process);
    UsageBuilder::new((process, hooks.as_ref()), &query, MemoryHeader::of(process.start())).replayed(replay.counted())
}

/// Returns the snapshot that answers the query, if there is one. The snapshot of a recording without an end is older
/// than its events; without events, it is all there is.
pub(crate) fn usable_snapshot(
    process: &ProcessRecording,
    recorder: &RecorderThread,
    query: &MemoryQuery,
    header: Option<MemoryHeader>,
) -> Result<Option<Arc<Snapshot>>, ReadError> {
    let Some(header) = header else { return Ok(None) };
    let is_of_whole = query.range.is_none() && query.temporary.is_none_or(|number| number == header.temporary);
    let is_final = is_of_whole && process.end().is_some();
    if is_final || header.mode == MemoryMode::Aggregate { recorder.snapshot(process) } else { Ok(None) }
}

fn replay(
    process: &ProcessRecording,
    query: &MemoryQuery,
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<Replayed>, Missing), ReadError> {
    let mut replay = Replay::new(process, query.temporary);
    let start = query.range.as_ref().map_or(0, |range| range.start);
    let until = query.range.as_ref().map(|range| 0..range.end);
    if start > 0 {
        replay.wait_for_range();
    }
    if !Decoder::of(process.dictionary()).has_memory() {
        return Ok((replay.counted(), Missing::default()));
    }
    let start = i64::try_from(start).unwrap_or(i64::MAX);
    let missing = process.visit_in_time_order(until, progress, &mut |timed| {
        if let Some(event) = replay.decode(&timed.event) {
            if replay.is_waiting() && timed.time_ns >= start {
                replay.begin_range(timed.event.ticks);
            }
            replay.add(timed.event.ticks, timed.thread, &event);
        }
        ControlFlow::Continue(())
    })?;
    if replay.is_waiting() {
        replay.begin_range(last_ticks(process));
    }
    Ok((replay.counted(), missing))
}

fn last_ticks(process: &ProcessRecording) -> u64 {
    process.dictionary().threads().filter_map(|thread| process.last_ticks(thread.number)).max().unwrap_or(0)
}

struct UsageBuilder<'a> {
    process: &'a ProcessRecording,
    query: &'a MemoryQuery,
    allocators: Labels,
    tags: Labels,
    usage: MemoryUsage,
}

impl<'a> UsageBuilder<'a> {
    fn new(
        (process, hooks): (&'a ProcessRecording, Option<&ForeignHooks>),
        query: &'a MemoryQuery,
        header: Option<MemoryHeader>,
    ) -> Self {
        let usage = MemoryUsage {
            source: UsageSource::Replayed,
            header,
            devices: Vec::new(),
            allocators: Vec::new(),
            tags: Vec::new(),
            remarks: hooks.map(ForeignHooks::sentence).into_iter().collect(),
            missing: Missing::default(),
        };
        Self { process, query, allocators: Labels::default(), tags: Labels::default(), usage }
    }

    fn take_snapshot(&mut self, snapshot: &Snapshot) {
        self.usage.source = UsageSource::Snapshot;
        let dictionary = self.process.dictionary();
        for device in snapshot.devices() {
            let mut rows = Rows::default();
            for known in snapshot.rows(device) {
                let site = CallSite {
                    allocator: self.allocators.of_frame(dictionary, known.site.allocator),
                    tag: self.tags.of_frame(dictionary, known.site.tag),
                    ..known.site
                };
                rows.add(CallSiteFigures { site, ..known });
            }
            let totals = (snapshot.totals(device), false);
            self.put(device, totals, rows, snapshot.sizes(device).collect());
        }
    }

    fn replayed(mut self, devices: Vec<Replayed>) -> MemoryUsage {
        for device in devices {
            self.take_replayed(device);
        }
        self.remark_on_replay();
        self.finish()
    }

    fn take_replayed(&mut self, replayed: Replayed) {
        let dictionary = self.process.dictionary();
        let mut rows = Rows::default();
        for known in replayed.sites {
            let kind = u8::try_from(known.site.allocator).ok().and_then(|number| dictionary.kind(number));
            let allocator = kind.map_or(0, |kind| self.allocators.number(&kind.name));
            let tag = self.tags.of_frame(dictionary, known.site.tag);
            rows.add(CallSiteFigures { site: CallSite { allocator, tag, ..known.site }, ..known });
        }
        let totals = (replayed.totals, replayed.is_peak_at_start);
        self.put(replayed.device, totals, rows, replayed.sizes);
    }

    /// Adds the figures of a device, with the selected rows.
    fn put(&mut self, device: i64, totals: (Totals, bool), rows: Rows, mut sizes: Vec<(u64, Figures)>) {
        if !self.query.takes_device(device) {
            return;
        }
        let (mut totals, is_peak_at_start) = totals;
        let is_used = totals.figures != Figures::default();
        let mut rows = rows.sorted();
        if self.query.filters_rows() {
            let tags = self.tags.clone().into_texts();
            rows.retain(|row| {
                self.query.takes_thread(self.process.dictionary().thread(row.thread))
                    && self.query.takes_tag(tags.get(row.tag as usize).map_or("", |tag| tag))
            });
            totals.figures = Figures::default();
            for row in &rows {
                add(&mut totals.figures, &row.figures);
            }
            sizes.clear();
        }
        sizes.sort_unstable_by_key(|(most, _)| *most);
        sizes.retain(|(_, figures)| *figures != Figures::default());
        self.usage.devices.push(DeviceUsage { device, totals, is_used, is_peak_at_start, rows, sizes });
    }

    fn remark_on_replay(&mut self) {
        if self.usage.header.is_some_and(|header| header.mode == MemoryMode::Aggregate) {
            let remark = "There are no figures: the recording ended before the first were written.";
            self.usage.remarks.push(remark.to_owned());
        }
        let unknown: u64 =
            self.usage.devices.iter().map(|device| device.totals.unknown_frees).fold(0, u64::saturating_add);
        if self.process.start().mode == RecordingMode::Ring {
            let remark = format!(
                "Only the last events were kept: earlier allocations are unknown, and {unknown} frees of them are left out."
            );
            self.usage.remarks.push(remark);
        }
    }

    fn finish(mut self) -> MemoryUsage {
        let own = EventKind::OWN_DEVICE;
        if self.query.takes_device(own) && self.usage.device(own).is_none() {
            let (totals, is_used, is_peak_at_start, rows, sizes) = Default::default();
            self.usage.devices.push(DeviceUsage { device: own, totals, is_used, is_peak_at_start, rows, sizes });
        }
        self.usage.devices.sort_by_key(|device| (device.device != own, device.device));
        self.usage.allocators = self.allocators.into_texts();
        self.usage.tags = self.tags.into_texts();
        self.usage
    }
}

/// Rows by call site: those with equal texts of their labels are merged.
#[derive(Default)]
struct Rows {
    rows: Vec<UsageRow>,
    by_site: HashMap<CallSite, usize>,
}

impl Rows {
    fn add(&mut self, known: CallSiteFigures) {
        let CallSite { stack, thread, allocator, tag } = known.site;
        let at = *self.by_site.entry(known.site).or_insert_with(|| {
            let figures = Figures::default();
            self.rows.push(UsageRow { stack, thread, allocator, tag, figures, leaked_blocks: 0, leaked_bytes: 0 });
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        add(&mut row.figures, &known.figures);
        row.leaked_blocks = row.leaked_blocks.saturating_add(known.leaked_blocks);
        row.leaked_bytes = row.leaked_bytes.saturating_add(known.leaked_bytes);
    }

    fn sorted(mut self) -> Vec<UsageRow> {
        self.rows.sort_unstable_by_key(|row| (row.stack, row.thread, row.allocator, row.tag));
        self.rows
    }
}
