//! How much memory a process has used, by place.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use stackweave_core::EventKind;
use stackweave_heap::{Figures, Place, Totals};
use stackweave_recording::events::{self, Decoder};
use stackweave_recording::file::Mode;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use super::figures::add;
use super::foreign_hooks::ForeignHooks;
use super::header::{MemoryHeader, MemoryMode};
use super::labels::Labels;
use super::query::MemoryQuery;
use super::replay::{PlaceFigures, Replay, Replayed};
use super::snapshot::{Snapshot, read_snapshot};

/// Where figures are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UsageSource {
    /// The recorder has kept them.
    Snapshot,
    /// The events were gone through again.
    Replayed,
}

impl UsageSource {
    /// The source in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Replayed => "replayed",
        }
    }
}

/// How much memory a process has used.
#[derive(Clone, Debug)]
pub struct MemoryUsage {
    /// Where the figures are from.
    pub source: UsageSource,
    /// How they were recorded; `None` if no memory recorder was at work, and a program has told of its allocations itself.
    pub header: Option<MemoryHeader>,
    /// The process's own memory first, then each device's. Those that were not asked for are left out.
    pub devices: Vec<DeviceUsage>,
    /// What allocators are called, by the numbers in rows; 0 is none.
    pub allocators: Vec<Arc<str>>,
    /// The same for tags.
    pub tags: Vec<Arc<str>>,
    /// What has to be known about the figures, a sentence each.
    pub remarks: Vec<String>,
    /// What could not be read.
    pub missing: Missing,
}

/// How much of a device's memory, or of the process's own, was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUsage {
    /// The device; [`EventKind::OWN_DEVICE`] for the process's own memory.
    pub device: i64,
    /// The sums of all rows, and when the peak was.
    pub totals: Totals,
    /// Whether any of it was taken, by whatever thread and with whatever tag.
    pub is_used: bool,
    /// Whether the highest of a part of the time was what was live when that began; else the peak's ticks say when it was.
    pub is_peak_at_start: bool,
    /// Each place once. In the order of places.
    pub rows: Vec<UsageRow>,
    /// By size: blocks of more than half of so many bytes, and at most so many. Of all threads and tags; nothing if only some
    /// of these are asked for.
    pub sizes: Vec<(u64, Figures)>,
}

/// How much a place has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The number of its stack in the recording; 0 if none was recorded.
    pub stack: u32,
    /// The number of the thread in the recording.
    pub thread: u32,
    /// Its place in [`MemoryUsage::allocators`].
    pub allocator: u32,
    /// Its place in [`MemoryUsage::tags`]; 0 if it had none.
    pub tag: u32,
    /// How much.
    pub figures: Figures,
    /// Blocks that were taken in the time that is asked for, and are live at its end. Those that were there when the recording
    /// began do not count.
    pub leaked_blocks: u64,
    /// Their bytes.
    pub leaked_bytes: u64,
}

impl MemoryUsage {
    /// What the process's own memory, or that of a device, was used for.
    pub fn device(&self, device: i64) -> Option<&DeviceUsage> {
        self.devices.iter().find(|usage| usage.device == device)
    }

    /// Whether a row is of blocks that were there when the recording began.
    pub fn is_from_before(&self, row: &UsageRow) -> bool {
        self.allocators.get(row.allocator as usize).is_some_and(|allocator| **allocator == *events::HOST_PRESENT.name)
    }

    /// How many bytes one sampled allocation stands for. All figures are estimates then.
    pub fn sample_every(&self) -> Option<u64> {
        self.header.and_then(|header| header.sample_every)
    }
}

/// Tells how much memory a process has used. The whole recording is told from its last snapshot, at once; a part of its time,
/// or a recording without one, by replaying its events. `progress` is told how many of its bytes are done.
pub fn read_usage(
    process: &ProcessRecording,
    query: &MemoryQuery,
    progress: &mut dyn FnMut(u64),
) -> Result<MemoryUsage, ReadError> {
    let header = MemoryHeader::of(process.start());
    let mut making = Making::new(process, query, header);
    if let Some(snapshot) = usable_snapshot(process, query, header)? {
        making.take_snapshot(&snapshot);
        progress(process.bytes());
        if header.is_some_and(|header| header.mode == MemoryMode::Aggregate) && query.range.is_some() {
            making.usage.remarks.push("There are only sums, and no history: they are of the whole time.".to_owned());
        }
        return Ok(making.finish());
    }
    let (replayed, missing) = replay(process, query, progress)?;
    making.usage.missing = missing;
    Ok(making.replayed(replayed))
}

/// How much memory a process has used, as far as a replay of it has come.
pub(crate) fn usage_so_far(process: &ProcessRecording, replay: &Replay) -> MemoryUsage {
    let query = MemoryQuery::default();
    Making::new(process, &query, MemoryHeader::of(process.start())).replayed(replay.counted())
}

/// The snapshot that answers the question, if there is one. That of a recording which was not ended is older than its events;
/// where there are no events, it is all there is.
pub(crate) fn usable_snapshot(
    process: &ProcessRecording,
    query: &MemoryQuery,
    header: Option<MemoryHeader>,
) -> Result<Option<Snapshot>, ReadError> {
    let Some(header) = header else { return Ok(None) };
    let is_asked_whole = query.range.is_none() && query.temporary.is_none_or(|number| number == header.temporary);
    let is_final = is_asked_whole && process.end().is_some();
    if is_final || header.mode == MemoryMode::Aggregate { read_snapshot(process) } else { Ok(None) }
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

struct Making<'a> {
    process: &'a ProcessRecording,
    query: &'a MemoryQuery,
    allocators: Labels,
    tags: Labels,
    usage: MemoryUsage,
}

impl<'a> Making<'a> {
    fn new(process: &'a ProcessRecording, query: &'a MemoryQuery, header: Option<MemoryHeader>) -> Self {
        let usage = MemoryUsage {
            source: UsageSource::Replayed,
            header,
            devices: Vec::new(),
            allocators: Vec::new(),
            tags: Vec::new(),
            remarks: ForeignHooks::read(process).map(|found| found.sentence()).into_iter().collect(),
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
                let place = Place {
                    allocator: self.allocators.of_frame(dictionary, known.place.allocator),
                    tag: self.tags.of_frame(dictionary, known.place.tag),
                    ..known.place
                };
                rows.add(PlaceFigures { place, ..known });
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
        for known in replayed.places {
            let kind = u8::try_from(known.place.allocator).ok().and_then(|number| dictionary.kind(number));
            let allocator = kind.map_or(0, |kind| self.allocators.number(&kind.name));
            let tag = self.tags.of_frame(dictionary, known.place.tag);
            rows.add(PlaceFigures { place: Place { allocator, tag, ..known.place }, ..known });
        }
        let totals = (replayed.totals, replayed.is_peak_at_start);
        self.put(replayed.device, totals, rows, replayed.sizes);
    }

    /// Adds the figures of a device, with the rows that are asked for.
    fn put(&mut self, device: i64, totals: (Totals, bool), rows: Rows, mut sizes: Vec<(u64, Figures)>) {
        if !self.query.takes_device(device) {
            return;
        }
        let (mut totals, is_peak_at_start) = totals;
        let is_used = totals.figures != Figures::default();
        let mut rows = rows.sorted();
        if self.query.chooses_rows() {
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
            let said = "There are no figures: the recording ended before the first were written.";
            self.usage.remarks.push(said.to_owned());
        }
        let unknown: u64 =
            self.usage.devices.iter().map(|device| device.totals.unknown_frees).fold(0, u64::saturating_add);
        if self.process.start().mode == Mode::Ring {
            let said = format!(
                "Only the last events were kept: what was allocated before is not known, and {unknown} frees of it are left out."
            );
            self.usage.remarks.push(said);
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

/// Rows by place: those whose labels have the same text are one.
#[derive(Default)]
struct Rows {
    rows: Vec<UsageRow>,
    by_place: HashMap<Place, usize>,
}

impl Rows {
    fn add(&mut self, known: PlaceFigures) {
        let Place { stack, thread, allocator, tag } = known.place;
        let at = *self.by_place.entry(known.place).or_insert_with(|| {
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
