//! Collects the costs of one process by stack and by span, as its events are read.
//!
//! Hot file: memory grows with the number of distinct stacks and paths, of open spans and of live blocks, and not with
//! the number of events.

use std::ops::{ControlFlow, Range};

use stackweave_heap::{Figures, Totals};
use stackweave_recording::events::{Decoder, Event};
use stackweave_recording::file::{EventBuffer, RawEvent};
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::measure::Measure;
use crate::aggregate::memory_costs::{DeviceCosts, MemoryCosts};
use crate::aggregate::options::{AggregateOptions, Grouping};
use crate::aggregate::profile::Counts;
use crate::aggregate::span_tree::{OpenSpans, SpanTree};
use crate::aggregate::stack_costs::{StackCosts, StackKey};
use crate::memory::{MemoryHeader, MemoryQuery, Snapshot, usable_snapshot};
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
    pub(crate) missing: Missing,
}

struct Collector<'a> {
    process: &'a ProcessRecording,
    options: &'a AggregateOptions,
    range: Range<u64>,
    decoder: Decoder,
    groups: Vec<GroupCosts>,
    threads: Vec<Thread>,
    by_number: WordMap<u32, usize>,
    memory: MemoryCosts,
    /// Whether memory was allocated or freed, as far as that is counted in any order.
    has_counted_memory: bool,
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
struct Thread {
    number: u32,
    /// `None` if the thread is not selected.
    group: Option<usize>,
    open: OpenSpans,
    /// The ticks at which events of this thread are missing, the next one last.
    losses: Vec<u64>,
}

/// Reads the events of a process. `range` is in nanoseconds since its base.
pub(crate) fn collect(
    process: &ProcessRecording,
    options: &AggregateOptions,
    range: Range<u64>,
    measures: MeasureSet,
    progress: &mut dyn FnMut(u64),
) -> Result<ProcessCosts, ReadError> {
    let memory = match measures {
        MeasureSet::Requested => MemoryCosts::of(process, options.measure, &range),
        MeasureSet::Everything => MemoryCosts::of_everything(process, &range),
    };
    let mut collector = Collector::new((process, options), range.clone(), measures, memory);
    if let Some(snapshot) = snapshot(process, options, measures)? {
        collector.memory = MemoryCosts::Kept(Box::new(snapshot));
        if measures == MeasureSet::Requested && options.measure.is_some() {
            progress(process.bytes());
            return collector.finish(Missing::default());
        }
    }
    let mut missing = collector.read(progress)?;
    // Only now it is known that memory is counted, which needs events in the order of time.
    if measures == MeasureSet::Everything && collector.has_counted_memory {
        let memory = MemoryCosts::replayed(process, &range);
        collector = Collector::new((process, options), range, measures, memory);
        missing = collector.read(progress)?;
    }
    collector.finish(missing)
}

/// Returns the snapshot with the requested measure, if there is one.
fn snapshot(
    process: &ProcessRecording,
    options: &AggregateOptions,
    measures: MeasureSet,
) -> Result<Option<Snapshot>, ReadError> {
    if measures == MeasureSet::Requested && options.measure.is_some_and(|measure| !measure.is_memory()) {
        return Ok(None);
    }
    let query = MemoryQuery { range: options.range.clone(), ..MemoryQuery::default() };
    usable_snapshot(process, &query, MemoryHeader::of(process.start()))
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
            has_counted_memory: false,
            used: Vec::new(),
            measures,
            wants_samples: measures == MeasureSet::Everything
                || matches!(options.measure, None | Some(Measure::Samples)),
        }
    }

    fn read(&mut self, progress: &mut dyn FnMut(u64)) -> Result<Missing, ReadError> {
        // Spans from before the range may extend into it, so all events before its end are read.
        let until = (self.range.end != u64::MAX).then_some(0..self.range.end);
        if self.memory.needs_order() {
            return self.process.visit_in_time_order(until, progress, &mut |timed| {
                self.one(timed.thread, &timed.event);
                ControlFlow::Continue(())
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
            self.event(&mut thread, &event);
        }
        self.threads[index] = thread;
    }

    fn one(&mut self, number: u32, event: &RawEvent<'_>) {
        let index = self.index_of(number);
        let mut thread = core::mem::take(&mut self.threads[index]);
        self.event(&mut thread, event);
        self.threads[index] = thread;
    }

    fn event(&mut self, thread: &mut Thread, event: &RawEvent<'_>) {
        let ticks = event.ticks;
        let event = self.decoder.decode(event);
        let time = self.process.timeline().nanoseconds(ticks);
        let is_inside = self.range.contains(&time);
        let is_of_memory = self.memory.counts(&event);
        if is_of_memory {
            self.memory.add((ticks, thread.number), &event, thread.open.innermost(), is_inside);
            self.has_counted_memory |= matches!(self.memory, MemoryCosts::Counted);
            if let (Event::Allocate(memory), true) = (&event, is_inside) {
                self.note_use(memory.region.device());
            }
        }
        let Some(group) = thread.group else { return };
        let group = &mut self.groups[group];
        group.events += u64::from(is_inside && (is_of_memory || event.is_of_time()));
        let time = thread.open.pass(&mut group.spans, &mut thread.losses, (ticks, time), &event);
        group.has_spans |= group.spans.add(&mut thread.open, &event, time);
        if let (Event::Sample(sample), true) = (&event, is_inside && self.wants_samples) {
            group.samples.add(stack_key(sample.stack, thread), sample.weight);
        }
        if let (Event::Allocate(memory), MemoryCosts::Counted) = (&event, &self.memory)
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

    fn new_thread(&mut self, number: u32) -> Thread {
        if !self.options.selects(self.process.dictionary().thread(number)) {
            return Thread { number, ..Thread::default() };
        }
        let own = (self.options.grouping == Grouping::Threads).then_some(number);
        let found = self.groups.iter().position(|group| group.thread == own);
        let group = found.unwrap_or_else(|| {
            self.groups.push(GroupCosts::new(own, self.range.clone()));
            self.groups.len() - 1
        });
        Thread { number, group: Some(group), open: OpenSpans::default(), losses: self.process.loss_ticks(number) }
    }

    fn finish(mut self, missing: Missing) -> Result<ProcessCosts, ReadError> {
        let last_ticks = self.threads.iter().filter_map(|thread| self.process.last_ticks(thread.number)).max();
        let memory = core::mem::replace(&mut self.memory, MemoryCosts::None);
        let is_kept = matches!(memory, MemoryCosts::Kept(_));
        let requested = self.measures == MeasureSet::Requested;
        let (device, only) = (self.options.device.filter(|_| requested), self.options.measure.filter(|_| requested));
        let totals = memory.finish(self.process, last_ticks.unwrap_or(0), &mut |of, known| {
            if device.is_some_and(|device| device != of) {
                return;
            }
            let thread = self.index_of(known.site.thread);
            if let Some(group) = self.threads[thread].group {
                let group = &mut self.groups[group];
                group.of_device(of).add_figures(known, only);
                group.events = group.events.saturating_add(if is_kept { known.figures.allocations } else { 0 });
            }
        })?;
        let totals = totals.into_iter().filter(|(of, _)| device.is_none_or(|device| device == *of));
        let totals: Vec<(i64, Totals)> = totals.collect();
        let blocks = totals.iter().map(|(of, totals)| (*of, [totals.replaced, totals.unknown_frees])).collect();
        let mut used = core::mem::take(&mut self.used);
        used.extend(totals.iter().filter(|(_, totals)| totals.figures != Figures::default()).map(|(of, _)| *of));
        for mut thread in self.threads {
            let Some(group) = thread.group else { continue };
            let last = self.process.last_ticks(thread.number).map(|ticks| self.process.timeline().nanoseconds(ticks));
            let goes_on = last.is_some_and(|last| last >= self.range.end);
            self.groups[group].spans.cut(&mut thread.open, goes_on.then_some(self.range.end));
        }
        self.groups.iter_mut().for_each(GroupCosts::seal);
        Ok(ProcessCosts { groups: self.groups, blocks, used, missing })
    }
}

impl ProcessCosts {
    /// Returns the counts of blocks of a device.
    pub(crate) fn block_counts(&self, device: i64) -> Counts {
        let found = self.blocks.iter().find(|(of, _)| *of == device);
        let [replaced_blocks, unknown_frees] = found.map_or([0; 2], |(_, counts)| *counts);
        Counts { replaced_blocks, unknown_frees, ..Counts::default() }
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
        self.samples.merge();
        self.memory.iter_mut().for_each(DeviceCosts::merge);
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

fn stack_key(stack: u32, thread: &Thread) -> StackKey {
    if stack == 0 { StackKey::Span(thread.open.innermost()) } else { StackKey::Stack(stack) }
}
