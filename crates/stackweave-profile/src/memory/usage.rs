//! The memory of a process, by call site.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use stackweave_core::EventKind;
use stackweave_heap::{CallSite, Figures, Totals};
use stackweave_recording::events::{self, Decoder};
use stackweave_recording::file::{Dictionary, RecordingMode};
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use super::figures::add;
use super::foreign_hooks::ForeignHooks;
use super::header::{MemoryHeader, RecordedMode};
use super::labels::LabelTexts;
use super::query::MemoryQuery;
use super::recorder_thread::RecorderThread;
use super::replay::{CallSiteFigures, Replay, Replayed};
use super::snapshot::RecordedSnapshot;
use crate::word_hash::WordMap;

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

impl DeviceUsage {
    /// Returns a device without memory.
    pub(super) fn empty(device: i64) -> Self {
        let (totals, is_used, is_peak_at_start, rows, sizes) = Default::default();
        Self { device, totals, is_used, is_peak_at_start, rows, sizes }
    }
}

impl MemoryUsage {
    /// Returns the memory of a device, or the heap.
    pub fn device(&self, device: i64) -> Option<&DeviceUsage> {
        self.devices.iter().find(|usage| usage.device == device)
    }

    /// Returns whether a row has blocks from before the recording.
    pub fn is_from_before(&self, row: &UsageRow) -> bool {
        self.is_before(row.allocator)
    }

    /// Returns whether the blocks of an allocator are from before the recording.
    pub(super) fn is_before(&self, allocator: u32) -> bool {
        self.allocators.get(allocator as usize).is_some_and(|allocator| **allocator == *events::HOST_PRESENT.name)
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
    Ok(UsageReader::open(process, &RecorderThread::read(process)?, query, progress)?.read())
}

/// Returns the memory of a process, as far as its replay has come.
pub(crate) fn usage_so_far(process: &ProcessRecording, replay: &Replay) -> MemoryUsage {
    let hooks = ForeignHooks::read(process);
    let sites = SiteSource::Replayed(replay.counted());
    UsageReader::new((process, hooks.as_ref()), &MemoryQuery::default(), sites).read()
}

/// Returns the snapshot that answers the query, if there is one. The snapshot of a recording without an end is older
/// than its events; without events, it is all there is.
pub(crate) fn usable_snapshot(
    process: &ProcessRecording,
    recorder: &RecorderThread,
    query: &MemoryQuery,
    header: Option<MemoryHeader>,
) -> Result<Option<Arc<RecordedSnapshot>>, ReadError> {
    let Some(header) = header else { return Ok(None) };
    let is_of_whole = query.range.is_none() && query.temporary.is_none_or(|number| number == header.temporary);
    let is_final = is_of_whole && process.end().is_some();
    if is_final || header.mode == RecordedMode::Aggregate { recorder.snapshot(process) } else { Ok(None) }
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

/// Reads the memory of a process without keeping its rows.
#[derive(Debug)]
pub(super) struct UsageReader<'a> {
    process: &'a ProcessRecording,
    query: &'a MemoryQuery,
    sites: SiteSource,
    allocators: LabelTexts,
    tags: LabelTexts,
    usage: MemoryUsage,
}

/// The source of call sites.
#[derive(Debug)]
enum SiteSource {
    Snapshot(Arc<RecordedSnapshot>),
    Replayed(Vec<Replayed>),
}

impl SiteSource {
    /// Returns each device, without rows.
    fn devices(&self) -> Vec<DeviceUsage> {
        let device = |device, totals: Totals, is_peak_at_start, sizes| {
            let is_used = totals.figures != Figures::default();
            DeviceUsage { device, totals, is_used, is_peak_at_start, rows: Vec::new(), sizes }
        };
        match self {
            Self::Snapshot(snapshot) => {
                let totals = snapshot.totals().iter();
                totals.map(|(of, totals)| device(*of, *totals, false, snapshot.sizes(*of).collect())).collect()
            }
            Self::Replayed(replayed) => {
                let of = |of: &Replayed| device(of.device, of.totals, of.is_peak_at_start, of.sizes.clone());
                replayed.iter().map(of).collect()
            }
        }
    }

    fn visit(&self, site: &mut dyn FnMut(i64, &CallSiteFigures)) {
        match self {
            Self::Snapshot(snapshot) => snapshot.visit_sites(site),
            Self::Replayed(all) => all.iter().for_each(|of| of.sites.iter().for_each(|known| site(of.device, known))),
        }
    }

    /// Returns the number of the label of a call site's allocator.
    fn allocator(&self, labels: &mut LabelTexts, dictionary: &Dictionary, allocator: u32) -> u32 {
        match self {
            Self::Snapshot(_) => labels.of_frame(dictionary, allocator),
            Self::Replayed(_) => {
                let kind = u8::try_from(allocator).ok().and_then(|number| dictionary.kind(number));
                kind.map_or(0, |kind| labels.number(&kind.name))
            }
        }
    }
}

impl<'a> UsageReader<'a> {
    /// Reads what is not about single call sites.
    pub(super) fn open(
        process: &'a ProcessRecording,
        recorder: &RecorderThread,
        query: &'a MemoryQuery,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, ReadError> {
        let of = (process, recorder.hooks.as_ref());
        if let Some(snapshot) = usable_snapshot(process, recorder, query, MemoryHeader::of(process.start()))? {
            progress(process.bytes());
            return Ok(Self::new(of, query, SiteSource::Snapshot(snapshot)));
        }
        let (replayed, missing) = replay(process, query, progress)?;
        let mut reader = Self::new(of, query, SiteSource::Replayed(replayed));
        reader.usage.missing = missing;
        Ok(reader)
    }

    fn new(
        (process, hooks): (&'a ProcessRecording, Option<&ForeignHooks>),
        query: &'a MemoryQuery,
        sites: SiteSource,
    ) -> Self {
        let own = EventKind::OWN_DEVICE;
        let mut devices = sites.devices();
        if devices.iter().all(|usage| usage.device != own) {
            devices.push(DeviceUsage::empty(own));
        }
        devices.retain(|usage| query.takes_device(usage.device));
        devices.sort_by_key(|usage| (usage.device != own, usage.device));
        for usage in &mut devices {
            usage.sizes.sort_unstable_by_key(|(most, _)| *most);
            usage.sizes.retain(|(_, figures)| *figures != Figures::default() && !query.filters_rows());
        }
        let usage = MemoryUsage {
            source: if matches!(sites, SiteSource::Snapshot(_)) {
                UsageSource::Snapshot
            } else {
                UsageSource::Replayed
            },
            header: MemoryHeader::of(process.start()),
            devices,
            allocators: Vec::new(),
            tags: Vec::new(),
            remarks: hooks.map(ForeignHooks::sentence).into_iter().collect(),
            missing: Missing::default(),
        };
        let mut reader =
            Self { process, query, sites, allocators: LabelTexts::default(), tags: LabelTexts::default(), usage };
        reader.remark();
        reader
    }

    /// Returns the memory, without anything that call sites are needed for.
    pub(super) fn usage(&self) -> &MemoryUsage {
        &self.usage
    }

    /// Calls `row` with the device of each selected row, several times for a call site whose labels have equal texts.
    /// Only then, the totals are those of the selected rows.
    pub(super) fn visit_rows(&mut self, row: &mut dyn FnMut(i64, &UsageRow)) {
        let Self { process, query, sites, allocators, tags, usage } = self;
        let (dictionary, is_filtered) = (process.dictionary(), query.filters_rows());
        if is_filtered {
            usage.devices.iter_mut().for_each(|device| device.totals.figures = Figures::default());
        }
        let mut threads: WordMap<u32, bool> = WordMap::default();
        sites.visit(&mut |device, known| {
            let CallSiteFigures { site: CallSite { stack, thread, .. }, figures, leaked_blocks, leaked_bytes } = *known;
            let allocator = sites.allocator(allocators, dictionary, known.site.allocator);
            let tag = tags.of_frame(dictionary, known.site.tag);
            let Some(usage) = usage.devices.iter_mut().find(|usage| usage.device == device) else { return };
            if is_filtered {
                let is_thread = || query.takes_thread(dictionary.thread(thread));
                if !*threads.entry(thread).or_insert_with(is_thread) || !query.takes_tag(tags.text(tag)) {
                    return;
                }
                add(&mut usage.totals.figures, &figures);
            }
            row(device, &UsageRow { stack, thread, allocator, tag, figures, leaked_blocks, leaked_bytes });
        });
    }

    fn read(mut self) -> MemoryUsage {
        let mut rows: BTreeMap<i64, Vec<UsageRow>> = BTreeMap::new();
        self.visit_rows(&mut |device, row| rows.entry(device).or_default().push(*row));
        let mut usage = self.finish();
        for device in &mut usage.devices {
            device.rows = rows.remove(&device.device).map(merged).unwrap_or_default();
        }
        usage
    }

    /// Returns the memory, without rows.
    pub(super) fn finish(self) -> MemoryUsage {
        MemoryUsage { allocators: self.allocators.into_texts(), tags: self.tags.into_texts(), ..self.usage }
    }

    fn remark(&mut self) {
        let usage = &mut self.usage;
        let is_of_totals = usage.header.is_some_and(|header| header.mode == RecordedMode::Aggregate);
        if usage.source == UsageSource::Snapshot {
            if is_of_totals && self.query.range.is_some() {
                usage.remarks.push(
                    "Only totals of memory were recorded, without a history: they are of the whole recording."
                        .to_owned(),
                );
            }
            return;
        }
        if is_of_totals {
            let remark = "There are no figures: the recording ended before the first were written.";
            usage.remarks.push(remark.to_owned());
        }
        let unknown: u64 = usage.devices.iter().map(|device| device.totals.unknown_frees).fold(0, u64::saturating_add);
        if self.process.start().mode == RecordingMode::Ring {
            let remark = format!(
                "Only the last events were kept: earlier allocations are unknown, and {unknown} frees of them are left out."
            );
            usage.remarks.push(remark);
        }
    }
}

/// Returns rows by call site: those with equal texts of their labels are merged.
fn merged(mut rows: Vec<UsageRow>) -> Vec<UsageRow> {
    let key = |row: &UsageRow| (row.stack, row.thread, row.allocator, row.tag);
    rows.sort_unstable_by_key(key);
    rows.dedup_by(|row, same| {
        let is_same = key(row) == key(same);
        if is_same {
            add(&mut same.figures, &row.figures);
            same.leaked_blocks = same.leaked_blocks.saturating_add(row.leaked_blocks);
            same.leaked_bytes = same.leaked_bytes.saturating_add(row.leaked_bytes);
        }
        is_same
    });
    rows
}
