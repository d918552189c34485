//! The report of memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use stackweave_core::EventKind;
use stackweave_heap::{Figures, Totals};
use stackweave_recording::{ProcessRecording, ReadError};
use stackweave_symbolize::Symbolizer;

use super::device_report::{DeviceMemory, default_device};
use super::figures::{add, add_totals};
use super::header::MemoryHeader;
use super::process_figures::{DeviceSums, LabelSums, ProcessFigures, tag_name};
use super::query::MemoryQuery;
use super::recorder_thread::RecorderThread;
use super::timeline::{MemoryTimeline, lifetime, read_timeline, timeline_with};
use super::usage::{DeviceUsage, UsageReader, UsageSource};
use crate::aggregate::{DeviceMeasure, GroupCosts, Measure, Profile, ProfileBuilder, View, offsets};

/// The memory of processes, of one device or of the heap.
#[derive(Clone, Debug)]
pub struct MemoryReport {
    /// The device; [`EventKind::OWN_DEVICE`] for the heap.
    pub device: i64,
    /// The processes, in the order of the recordings.
    pub processes: Vec<ProcessMemory>,
    /// The sums. Processes have their peaks at different times: the sum of peaks was never live at once.
    pub totals: Totals,
    /// By size, as in [`DeviceUsage::sizes`].
    pub sizes: Vec<(u64, Figures)>,
    /// By thread, those with the highest peak first.
    pub threads: Vec<NamedFigures>,
    /// By tag, those with the highest peak first. Memory without a tag has an empty name.
    pub tags: Vec<NamedFigures>,
    /// By allocator, those with the highest peak first.
    pub allocators: Vec<NamedFigures>,
    /// The memory of all processes over time, in nanoseconds since the first began to record. For a device it is set
    /// when devices are added, with the bytes of segments instead of resident bytes.
    pub timeline: MemoryTimeline,
    /// From the first start to the last event, or the selected time.
    pub time: Range<u64>,
    /// Whether a time range was selected.
    pub is_part: bool,
    /// The blocks that were live at the peak, as a profile with separate lines.
    pub peak: Profile,
    /// The blocks that were not freed.
    pub live: Profile,
    /// The temporary blocks.
    pub temporary: Profile,
    /// The limit of temporary blocks, if one was selected.
    pub temporary_after: Option<u32>,
    /// The part of the live memory that was allocated before the recording.
    pub from_before: FromBefore,
    /// All devices with memory.
    pub devices: Vec<i64>,
    /// Whether any of them has allocations, by any thread and with any tag.
    pub is_used: bool,
    /// The memory of each device, by device and process, if devices were added.
    pub device_memory: Vec<DeviceMemory>,
    /// Remarks for the user, one sentence each.
    pub remarks: Vec<String>,
}

/// Memory from before a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FromBefore {
    /// The number of blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The memory of one process.
#[derive(Clone, Debug)]
pub struct ProcessMemory {
    /// The process.
    pub pid: u32,
    /// The settings of the recorder.
    pub header: Option<MemoryHeader>,
    /// The source of the figures.
    pub source: UsageSource,
    /// The sums.
    pub totals: Totals,
    /// The time of its peak, in nanoseconds since the first process began to record; `None` without one.
    pub peak_ns: Option<u64>,
}

/// The figures of a thread, a tag or an allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFigures {
    /// The name.
    pub name: Arc<str>,
    /// The system's id of a thread; 0 for others.
    pub number: u32,
    /// The figures.
    pub figures: Figures,
}

/// Reads the memory of processes: of the first selected device, or of the heap; if only devices were recorded, of the
/// first device. The range of `query` is in nanoseconds since the first process began to record.
pub fn read_report(
    processes: &[ProcessRecording],
    query: &MemoryQuery,
    symbolizer: Option<&Symbolizer>,
    progress: &mut dyn FnMut(u64),
) -> Result<MemoryReport, ReadError> {
    let local = |offset: u64| {
        query.range.as_ref().map(|range| range.start.saturating_sub(offset)..range.end.saturating_sub(offset))
    };
    let of_process = |offset| MemoryQuery { devices: Vec::new(), range: local(offset), ..query.clone() };
    let queries: Vec<MemoryQuery> = offsets(processes).into_iter().map(of_process).collect();
    let (mut readers, mut recorders) = (Vec::with_capacity(processes.len()), Vec::with_capacity(processes.len()));
    let mut done = 0;
    for (process, query) in processes.iter().zip(&queries) {
        let recorder = RecorderThread::read(process)?;
        readers.push(UsageReader::open(process, &recorder, query, &mut |bytes| progress(done + bytes))?);
        recorders.push(recorder.without_snapshot());
        done += process.bytes();
    }
    let default = || default_device(readers.iter().map(UsageReader::usage));
    let device = query.devices.first().copied().unwrap_or_else(default);
    let mut builder = MemoryReportBuilder::new(query, processes, device);
    let mut costs = Vec::with_capacity(processes.len());
    for ((process, offset), reader) in processes.iter().zip(offsets(processes)).zip(readers) {
        costs.push(builder.add(process, offset, reader));
    }
    builder.set_profiles(processes, &costs, (query.shown(), symbolizer));
    if device == EventKind::OWN_DEVICE {
        let mut timelines = Vec::with_capacity(processes.len());
        for ((process, offset), recorder) in processes.iter().zip(offsets(processes)).zip(&recorders) {
            let timeline = timeline_with(process, recorder, local(offset), &mut |_| {})?;
            timelines.push((lifetime(process, offset), timeline));
        }
        builder.report.timeline = MemoryTimeline::sum(&timelines);
    }
    Ok(builder.finish())
}

/// Returns the figures of a device, or of the heap, without the profiles and remarks of a report. `figures` are those of
/// each process, of the threads that `query` selects.
pub(crate) fn figures_report<'f>(
    processes: &[ProcessRecording],
    figures: impl Iterator<Item = &'f ProcessFigures>,
    query: &MemoryQuery,
    device: i64,
) -> Result<MemoryReport, ReadError> {
    let mut builder = MemoryReportBuilder::new(query, processes, device);
    let mut timelines = Vec::new();
    for ((process, offset), figures) in processes.iter().zip(offsets(processes)).zip(figures) {
        builder.add_figures(process, offset, figures, query);
        if device == EventKind::OWN_DEVICE {
            let local = |range: &Range<u64>| range.start.saturating_sub(offset)..range.end.saturating_sub(offset);
            let timeline = match &figures.timeline {
                Some(known) => known.clone(),
                None => read_timeline(process, query.range.as_ref().map(local), &mut |_| {})?,
            };
            timelines.push((lifetime(process, offset), timeline));
        }
    }
    builder.report.timeline = MemoryTimeline::sum(&timelines);
    Ok(builder.finish())
}

/// The measures of the profiles.
const MEASURES: [Measure; 3] = [Measure::PeakBytes, Measure::LiveBytes, Measure::TemporaryBytes];

struct MemoryReportBuilder {
    report: MemoryReport,
    threads: BTreeMap<(u32, Arc<str>), Figures>,
    tags: BTreeMap<(u32, Arc<str>), Figures>,
    allocators: BTreeMap<(u32, Arc<str>), Figures>,
    sizes: BTreeMap<u64, Figures>,
    has_several: bool,
}

impl MemoryReportBuilder {
    fn new(query: &MemoryQuery, processes: &[ProcessRecording], device: i64) -> Self {
        let end = |(process, offset): (&ProcessRecording, u64)| {
            process.time_range().map_or(0, |range| range.end.saturating_sub(1)).saturating_add(offset)
        };
        let end = processes.iter().zip(offsets(processes)).map(end).max().unwrap_or(0);
        let selected = query.range.clone().unwrap_or(0..end);
        let report = MemoryReport {
            device,
            processes: Vec::new(),
            totals: Totals::default(),
            sizes: Vec::new(),
            threads: Vec::new(),
            tags: Vec::new(),
            allocators: Vec::new(),
            timeline: MemoryTimeline::default(),
            time: selected.start..selected.end.min(end.max(selected.start)),
            is_part: query.range.is_some(),
            peak: Profile::empty(Measure::PeakBytes),
            live: Profile::empty(Measure::LiveBytes),
            temporary: Profile::empty(Measure::TemporaryBytes),
            temporary_after: query.temporary,
            from_before: FromBefore::default(),
            devices: Vec::new(),
            is_used: false,
            device_memory: Vec::new(),
            remarks: Vec::new(),
        };
        let (threads, tags, allocators, sizes) = Default::default();
        Self { report, threads, tags, allocators, sizes, has_several: processes.len() > 1 }
    }

    /// Adds a process. Returns its memory by stack.
    fn add(&mut self, process: &ProcessRecording, offset: u64, mut reader: UsageReader<'_>) -> GroupCosts {
        let (mut costs, mut sums) = (GroupCosts::new(None, 0..u64::MAX), LabelSums::default());
        reader.visit_rows(&mut |device, row| {
            if device == self.report.device {
                costs.add_row(row, &MEASURES);
                sums.add([row.thread, row.tag, row.allocator], &row.figures);
            }
        });
        costs.seal();
        let usage = reader.finish();
        let text = |texts: &[Arc<str>], number: u32| texts.get(number as usize).cloned().unwrap_or_else(|| "".into());
        let names = (|tag| text(&usage.tags, tag), |allocator| text(&usage.allocators, allocator));
        self.add_labels(process, &sums, names);
        for (_, figures) in sums.allocators.iter().filter(|(number, _)| usage.is_before(**number)) {
            self.add_before(FromBefore { blocks: figures.live_blocks, bytes: figures.live_bytes });
        }
        let pid = process.start().pid;
        let of = if self.has_several { format!("Process {pid}: ") } else { String::new() };
        self.report.remarks.extend(usage.remarks.iter().map(|remark| format!("{of}{remark}")));
        let missing = usage.missing.sentences().into_iter().map(|sentence| format!("{of}{sentence}"));
        self.report.remarks.extend(missing);
        self.report.devices.extend(usage.devices.iter().map(|device| device.device));
        self.report.is_used |= usage.devices.iter().any(|device| device.is_used);
        let empty = DeviceUsage::empty(self.report.device);
        let device = usage.device(self.report.device).unwrap_or(&empty);
        let totals = (device.totals, device.is_peak_at_start);
        self.add_process((process, offset), (usage.header, usage.source), totals, &device.sizes);
        costs
    }

    /// Adds sums by thread, tag and allocator, with functions that name tags and allocators.
    fn add_labels(
        &mut self,
        process: &ProcessRecording,
        sums: &LabelSums,
        (tag, allocator): (impl Fn(u32) -> Arc<str>, impl Fn(u32) -> Arc<str>),
    ) {
        for (number, figures) in &sums.threads {
            let thread = process.dictionary().thread(*number);
            let (tid, name) = thread.map_or((0, ""), |thread| (thread.tid, thread.name.as_str()));
            add(self.threads.entry((tid, name.into())).or_default(), figures);
        }
        for (number, figures) in &sums.tags {
            add(self.tags.entry((0, tag(*number))).or_default(), figures);
        }
        for (number, figures) in &sums.allocators {
            add(self.allocators.entry((0, allocator(*number))).or_default(), figures);
        }
    }

    fn add_before(&mut self, more: FromBefore) {
        let FromBefore { blocks, bytes } = &mut self.report.from_before;
        *blocks = blocks.saturating_add(more.blocks);
        *bytes = bytes.saturating_add(more.bytes);
    }

    fn add_process(
        &mut self,
        (process, offset): (&ProcessRecording, u64),
        (header, source): (Option<MemoryHeader>, UsageSource),
        (totals, is_peak_at_start): (Totals, bool),
        sizes: &[(u64, Figures)],
    ) {
        let at = process.timeline().nanoseconds(totals.peak_ticks).saturating_add(offset);
        let at = if is_peak_at_start { self.report.time.start } else { at };
        let peak_ns = (totals.figures.peak_bytes > 0).then_some(at);
        let pid = process.start().pid;
        self.report.processes.push(ProcessMemory { pid, header, source, totals, peak_ns });
        add_totals(&mut self.report.totals, &totals);
        for (most, figures) in sizes {
            add(self.sizes.entry(*most).or_default(), figures);
        }
    }

    fn add_figures(&mut self, process: &ProcessRecording, offset: u64, of: &ProcessFigures, query: &MemoryQuery) {
        let dictionary = process.dictionary();
        self.report.devices.extend(of.known_devices());
        self.report.is_used |= of.devices.iter().any(|sums| sums.totals.figures != Figures::default());
        let empty = DeviceSums::default();
        let sums = of.device(self.report.device).unwrap_or(&empty);
        let (mut totals, mut sizes) = (sums.totals, sums.sizes.clone());
        sizes.retain(|(_, figures)| *figures != Figures::default());
        if query.filters_rows() {
            totals.figures = sums.selected;
            sizes.clear();
        }
        let header = MemoryHeader::of(process.start());
        self.add_process((process, offset), (header, of.source), (totals, sums.is_peak_at_start), &sizes);
        let names = (|tag| tag_name(dictionary, tag).into(), |number| of.allocator(dictionary, number).into());
        self.add_labels(process, &sums.labels, names);
        self.add_before(of.memory_from_before(dictionary, sums));
    }

    /// Builds the profiles of all processes together.
    fn set_profiles(
        &mut self,
        processes: &[ProcessRecording],
        costs: &[GroupCosts],
        (view, symbolizer): (&View, Option<&Symbolizer>),
    ) {
        let counted = |measure| DeviceMeasure { measure, device: EventKind::OWN_DEVICE };
        let mut builder = ProfileBuilder::new(view);
        for (process, group) in processes.iter().zip(costs) {
            let costs = MEASURES.iter().map(|measure| (group, counted(*measure)));
            builder.add_process(process, costs, (symbolizer, true));
        }
        let groups: Vec<(usize, &GroupCosts)> = costs.iter().enumerate().collect();
        let profiles = MEASURES.map(|measure| builder.profile(&groups, counted(measure)));
        [self.report.peak, self.report.live, self.report.temporary] = profiles;
    }

    fn finish(mut self) -> MemoryReport {
        self.report.threads = named(self.threads);
        self.report.tags = named(self.tags);
        self.report.allocators = named(self.allocators);
        self.report.sizes = self.sizes.into_iter().collect();
        self.report.devices.sort_unstable();
        self.report.devices.dedup();
        self.report
    }
}

fn named(of: BTreeMap<(u32, Arc<str>), Figures>) -> Vec<NamedFigures> {
    let mut all: Vec<NamedFigures> =
        of.into_iter().map(|((number, name), figures)| NamedFigures { name, number, figures }).collect();
    all.sort_by_key(|named| std::cmp::Reverse((named.figures.peak_bytes, named.figures.bytes)));
    all
}

impl MemoryReport {
    /// Returns how many bytes one sampled allocation stands for, if any of the recordings is sampled: figures are then
    /// estimates.
    pub fn sample_every(&self) -> Option<u64> {
        self.processes.iter().find_map(|process| process.header.and_then(|header| header.sample_every))
    }

    /// Returns the time of the highest of all peaks.
    pub fn peak_ns(&self) -> Option<u64> {
        self.processes
            .iter()
            .max_by_key(|process| process.totals.figures.peak_bytes)
            .and_then(|process| process.peak_ns)
    }

    /// Returns whether there were no allocations.
    pub fn is_empty(&self) -> bool {
        self.totals.figures == Figures::default()
    }
}
