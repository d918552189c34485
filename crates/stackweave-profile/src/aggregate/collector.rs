//! Collects the costs of one process by stack and by span, as its events are read.
//!
//! Hot file: memory grows with the number of distinct stacks and paths, of open spans and of live blocks, and not with
//! the number of events.

use std::ops::{ControlFlow, Range};

use stackweave_heap::Figures;
use stackweave_recording::events::{Decoder, Event};
use stackweave_recording::file::EventBuffer;
use stackweave_recording::{Missing, ProcessRecording, ReadError, TimedEvent};

use crate::aggregate::measure::Measure;
use crate::aggregate::memory_costs::{CountedMemory, DeviceCosts, MemoryCosts};
use crate::aggregate::options::{AggregateOptions, Grouping};
use crate::aggregate::profile::ProfileCounts;
use crate::aggregate::span_tree::{OpenSpans, SpanTree};
use crate::aggregate::stack_costs::{StackCosts, StackKey};
use crate::memory::{MemoryHeader, MemoryQuery, ProcessFigures, RecorderThread, UsageSource, usable_snapshot};
use crate::word_hash::WordMap;

/// The costs of a process, or of one of its threads.
#[derive(Debug)]
pub(crate) struct GroupCosts {
    /// The number of the thread if threads are separate.
    pub(crate) thread: Option<u32>,
    pub(crate) spans: SpanTree,
    pub(crate) samples: StackCosts,
    /// The memory of each device with allocations.
    pub(crate) memory: Vec<DeviceCosts>,
    pub(crate) has_spans: bool,
    /// The number of events in the selected time.
    pub(crate) events: u64,
}

/// The costs of a process.
#[derive(Debug)]
pub(crate) struct ProcessCosts {
    pub(crate) groups: Vec<GroupCosts>,
    /// The counts of each device and of the heap: replaced blocks, and frees of unknown ones.
    pub(crate) blocks: Vec<(i64, [u64; 2])>,
    /// The devices with allocations in that time, by any thread.
    pub(crate) used: Vec<i64>,
    /// The memory without its stacks.
    pub(crate) figures: ProcessFigures,
    pub(crate) missing: Missing,
}

struct Collector<'a> {
    process: &'a ProcessRecording,
    options: &'a AggregateOptions,
    range: Range<u64>,
    decoder: Decoder,
    groups: Vec<GroupCosts>,
    threads: Vec<CollectedThread>,
    by_number: WordMap<u32, usize>,
    memory: MemoryCosts,
    /// The devices with allocations, as far as they are counted in any order.
    used: Vec<i64>,
    measures: MeasureSet,
    wants_samples: bool,
}

/// Which measures are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasureSet {
    /// The measure and the device of the options; without a measure, those that one fast pass provides.
    Requested,
    /// Every measure of every device.
    Everything,
}

#[derive(Debug, Default)]
struct CollectedThread {
    number: u32,
    /// `None` if the thread is not selected.
    group: Option<usize>,
    open: OpenSpans,
    /// The ticks at which events of this thread are missing, the next one last.
    losses: Vec<u64>,
}

/// Another consumer of the events of a process while they are read, in the order of time.
pub(crate) type EventObserver<'o> = dyn FnMut(&TimedEvent<'_>, &Event<'_>) -> ControlFlow<()> + 'o;

/// Reads the events of a process once. `range` is in nanoseconds since its base.
pub(crate) fn collect(
    process: &ProcessRecording,
    options: &AggregateOptions,
    range: Range<u64>,
    measures: MeasureSet,
    (observer, progress): (Option<&mut EventObserver<'_>>, &mut dyn FnMut(u64)),
) -> Result<ProcessCosts, ReadError> {
    let is_of_memory = measures == MeasureSet::Everything || options.measure.is_none_or(Measure::is_memory);
    let recorder = if is_of_memory { RecorderThread::read(process)? } else { RecorderThread::default() };
    let query = MemoryQuery { range: options.range.clone(), ..MemoryQuery::default() };
    let header = MemoryHeader::of(process.start()).filter(|_| is_of_memory);
    let snapshot = usable_snapshot(process, &recorder, &query, header)?;
    let recorder = recorder.without_snapshot();
    let has_snapshot = snapshot.is_some();
    let memory = match (snapshot, measures) {
        (Some(snapshot), _) => MemoryCosts::Kept(snapshot),
        (None, MeasureSet::Requested) => MemoryCosts::of(process, options.measure, &range),
        (None, MeasureSet::Everything) => MemoryCosts::replayed(process, &range),
    };
    let mut collector = Collector::new((process, options), range, measures, memory);
    if has_snapshot && measures == MeasureSet::Requested && options.measure.is_some() {
        progress(process.bytes());
        return Ok(collector.finish(Missing::default(), recorder));
    }
    let missing = collector.read(observer, progress)?;
    Ok(collector.finish(missing, recorder))
}

impl<'a> Collector<'a> {
    fn new(
        (process, options): (&'a ProcessRecording, &'a AggregateOptions),
        range: Range<u64>,
        measures: MeasureSet,
        memory: MemoryCosts,
    ) -> Self {
        Self {
            process,
            options,
            range,
            decoder: Decoder::of(process.dictionary()),
            groups: Vec::new(),
            threads: Vec::new(),
            by_number: WordMap::default(),
            memory,
            used: Vec::new(),
            measures,
            wants_samples: measures == MeasureSet::Everything
                || matches!(options.measure, None | Some(Measure::Samples)),
        }
    }

    fn read(
        &mut self,
        mut observer: Option<&mut EventObserver<'_>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Missing, ReadError> {
        // Spans from before the range may extend into it, so all events before its end are read.
        let until = (self.range.end != u64::MAX).then_some(0..self.range.end);
        if self.memory.needs_order() || observer.is_some() {
            return self.process.visit_in_time_order(until, progress, &mut |timed| {
                let event = self.decoder.decode(&timed.event);
                let time = u64::try_from(timed.time_ns).unwrap_or(0);
                self.one(timed.thread, (timed.event.ticks, time), &event);
                observer.as_mut().map_or(ControlFlow::Continue(()), |observer| observer(&timed, &event))
            });
        }
        self.process.visit(until, progress, &mut |block| {
            self.block(block);
            ControlFlow::Continue(())
        })
    }

    fn block(&mut self, block: &EventBuffer) {
        let index = self.index_of(block.thread());
        let mut thread = core::mem::take(&mut self.threads[index]);
        for event in block {
            let time = self.process.timeline().nanoseconds(event.ticks);
            self.event(&mut thread, (event.ticks, time), &self.decoder.decode(&event));
        }
        self.threads[index] = thread;
    }

    fn one(&mut self, number: u32, at: (u64, u64), event: &Event<'_>) {
        let index = self.index_of(number);
        let mut threads = core::mem::take(&mut self.threads);
        self.event(&mut threads[index], at, event);
        self.threads = threads;
    }

    fn event(&mut self, thread: &mut CollectedThread, (ticks, time): (u64, u64), event: &Event<'_>) {
        let is_inside = self.range.contains(&time);
        let is_of_memory = self.memory.counts(event);
        if is_of_memory {
            self.memory.add((ticks, time), thread.number, event, (thread.open.innermost(), is_inside));
            if let (Event::Allocate(memory), true) = (event, is_inside) {
                self.note_use(memory.region.device());
            }
        }
        let Some(group) = thread.group else { return };
        let group = &mut self.groups[group];
        group.events += u64::from(is_inside && (is_of_memory || event.is_of_time()));
        let time = thread.open.pass(&mut group.spans, &mut thread.losses, (ticks, time), event);
        group.has_spans |= group.spans.add(&mut thread.open, event, time);
        if let (Event::Sample(sample), true) = (event, is_inside && self.wants_samples) {
            group.samples.add(stack_key(sample.stack, thread), sample.weight);
        }
        if let (Event::Allocate(memory), MemoryCosts::Counted) = (event, &self.memory)
            && is_of_memory
            && is_inside
            && self.options.device.is_none_or(|device| device == memory.region.device())
        {
            let allocated = &mut group.of_device(memory.region.device()).allocated;
            allocated.add(stack_key(memory.stack, thread), i64::try_from(memory.size).unwrap_or(i64::MAX));
        }
    }

    fn note_use(&mut self, device: i64) {
        if matches!(self.memory, MemoryCosts::Counted) && !self.used.contains(&device) {
            self.used.push(device);
        }
    }

    /// Returns the index of the thread with this number.
    fn index_of(&mut self, number: u32) -> usize {
        if let Some(index) = self.by_number.get(&number) {
            return *index;
        }
        let thread = self.new_thread(number);
        self.threads.push(thread);
        self.by_number.insert(number, self.threads.len() - 1);
        self.threads.len() - 1
    }

    fn new_thread(&mut self, number: u32) -> CollectedThread {
        if !self.options.selects(self.process.dictionary().thread(number)) {
            return CollectedThread { number, ..CollectedThread::default() };
        }
        let own = (self.options.grouping == Grouping::Threads).then_some(number);
        let found = self.groups.iter().position(|group| group.thread == own);
        let group = found.unwrap_or_else(|| {
            self.groups.push(GroupCosts::new(own, self.range.clone()));
            self.groups.len() - 1
        });
        CollectedThread {
            number,
            group: Some(group),
            open: OpenSpans::default(),
            losses: self.process.loss_ticks(number),
        }
    }

    fn finish(mut self, missing: Missing, recorder: RecorderThread) -> ProcessCosts {
        let last_ticks = self.threads.iter().filter_map(|thread| self.process.last_ticks(thread.number)).max();
        let memory = core::mem::replace(&mut self.memory, MemoryCosts::None);
        let is_kept = matches!(memory, MemoryCosts::Kept(_));
        let sums_all = self.measures == MeasureSet::Everything;
        let (device, only) = (self.options.device.filter(|_| !sums_all), self.options.measure.filter(|_| !sums_all));
        let counted = memory.finish(device, last_ticks.unwrap_or(0), &mut |sums, known| {
            let thread = self.index_of(known.site.thread);
            if let Some(group) = self.threads[thread].group {
                let group = &mut self.groups[group];
                group.of_device(sums.device).add_figures(known, only);
                group.events = group.events.saturating_add(if is_kept { known.figures.allocations } else { 0 });
                if sums_all {
                    sums.add(&known.site, &known.figures);
                }
            }
        });
        let CountedMemory { devices, timeline } = counted;
        let blocks = devices.iter().map(|of| (of.device, [of.totals.replaced, of.totals.unknown_frees])).collect();
        let mut used = core::mem::take(&mut self.used);
        used.extend(devices.iter().filter(|of| of.totals.figures != Figures::default()).map(|of| of.device));
        let source = if is_kept { UsageSource::Snapshot } else { UsageSource::Replayed };
        let timeline = recorder.timeline_of(&self.range).or(timeline);
        let figures = ProcessFigures { source, devices, timeline, hooks: recorder.hooks };
        for mut thread in self.threads {
            let Some(group) = thread.group else { continue };
            let last = self.process.last_ticks(thread.number).map(|ticks| self.process.timeline().nanoseconds(ticks));
            let goes_on = last.is_some_and(|last| last >= self.range.end);
            self.groups[group].spans.cut(&mut thread.open, goes_on.then_some(self.range.end));
        }
        self.groups.iter_mut().for_each(GroupCosts::seal);
        ProcessCosts { groups: self.groups, blocks, used, figures, missing }
    }
}

impl ProcessCosts {
    /// Returns the counts of blocks of a device.
    pub(crate) fn block_counts(&self, device: i64) -> ProfileCounts {
        let found = self.blocks.iter().find(|(of, _)| *of == device);
        let [replaced_blocks, unknown_frees] = found.map_or([0; 2], |(_, counts)| *counts);
        ProfileCounts { replaced_blocks, unknown_frees, ..ProfileCounts::default() }
    }
}

impl GroupCosts {
    pub(crate) fn new(thread: Option<u32>, range: Range<u64>) -> Self {
        let (samples, memory) = Default::default();
        Self { thread, spans: SpanTree::new(range), samples, memory, has_spans: false, events: 0 }
    }

    /// Prepares the costs for reading: no more are added.
    pub(crate) fn seal(&mut self) {
        self.spans.seal();
        self.samples.seal();
        self.memory.iter_mut().for_each(DeviceCosts::seal);
    }

    pub(crate) fn of_device(&mut self, device: i64) -> &mut DeviceCosts {
        let found = self.memory.iter().position(|known| known.device == device);
        let index = found.unwrap_or_else(|| {
            self.memory.push(DeviceCosts { device, ..DeviceCosts::default() });
            self.memory.len() - 1
        });
        &mut self.memory[index]
    }
}

fn stack_key(stack: u32, thread: &CollectedThread) -> StackKey {
    if stack == 0 { StackKey::Span(thread.open.innermost()) } else { StackKey::Stack(stack) }
}
