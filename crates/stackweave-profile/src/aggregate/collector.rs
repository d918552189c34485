//! The events of one process to costs by stack and by span, while they stream by.
//!
//! Hot file: what is kept grows with the number of distinct stacks and paths, with the spans that are open and the blocks
//! that are not freed, and not with the number of events.

use std::ops::{ControlFlow, Range};

use stackweave_recording::file::{Event, EventBuffer, Lost};
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::kinds::{Kinds, Seen};
use crate::aggregate::measure::Measure;
use crate::aggregate::memory_costs::MemoryCosts;
use crate::aggregate::options::{AggregateOptions, Grouping};
use crate::aggregate::span_tree::{OpenSpans, SpanTree};
use crate::aggregate::stack_costs::{Place, StackCosts};
use crate::memory::{MemoryEvent, MemoryHeader, MemoryQuery, Snapshot, usable_snapshot};
use crate::word_hash::WordMap;

/// What the events of a process, or of one of its threads, cost.
#[derive(Debug)]
pub(crate) struct GroupCosts {
    /// The number of the thread if each has a group of its own.
    pub(crate) thread: Option<u32>,
    pub(crate) spans: SpanTree,
    pub(crate) samples: StackCosts,
    pub(crate) allocated: StackCosts,
    pub(crate) live: StackCosts,
    pub(crate) peak: StackCosts,
    pub(crate) temporary: StackCosts,
    pub(crate) has_spans: bool,
    /// How many events there were in the time that was asked for.
    pub(crate) events: u64,
}

/// What the events of a process cost.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) groups: Vec<GroupCosts>,
    pub(crate) replaced_blocks: u64,
    pub(crate) unknown_frees: u64,
    pub(crate) missing: Missing,
}

struct Collector<'a> {
    process: &'a ProcessRecording,
    options: &'a AggregateOptions,
    range: Range<u64>,
    kinds: Kinds,
    groups: Vec<GroupCosts>,
    threads: Vec<Thread>,
    by_number: WordMap<u32, usize>,
    memory: MemoryCosts,
    wants_samples: bool,
}

#[derive(Debug, Default)]
struct Thread {
    number: u32,
    /// `None` if the thread was not asked for.
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
    progress: &mut dyn FnMut(u64),
) -> Result<Collected, ReadError> {
    let memory = MemoryCosts::of(process, options.measure, &range);
    let mut collector = Collector {
        process,
        options,
        range,
        kinds: Kinds::of(process.dictionary()),
        groups: Vec::new(),
        threads: Vec::new(),
        by_number: WordMap::default(),
        memory,
        wants_samples: matches!(options.measure, None | Some(Measure::Samples)),
    };
    if let Some(snapshot) = snapshot(process, options)? {
        collector.memory = MemoryCosts::Kept(Box::new(snapshot));
        if options.measure.is_some() {
            progress(process.bytes());
            return Ok(collector.finish(Missing::default()));
        }
    }
    // What was begun before the range may reach into it, so all before its end is read.
    let until = (collector.range.end != u64::MAX).then_some(0..collector.range.end);
    let missing = if collector.memory.needs_order() {
        process.visit_in_time_order(until, progress, &mut |timed| {
            collector.one(timed.thread, &timed.event);
            ControlFlow::Continue(())
        })?
    } else {
        process.visit(until, progress, &mut |block| {
            collector.block(block);
            ControlFlow::Continue(())
        })?
    };
    Ok(collector.finish(missing))
}

/// The snapshot that has what is asked for, if there is one.
fn snapshot(process: &ProcessRecording, options: &AggregateOptions) -> Result<Option<Snapshot>, ReadError> {
    if options.measure.is_some_and(|measure| !measure.is_memory()) {
        return Ok(None);
    }
    let query = MemoryQuery { range: options.range.clone(), ..MemoryQuery::default() };
    usable_snapshot(process, &query, MemoryHeader::of(process.start()))
}

impl Collector<'_> {
    fn block(&mut self, block: &EventBuffer) {
        let place = self.place_of(block.thread());
        let mut thread = core::mem::take(&mut self.threads[place]);
        for event in block {
            self.event(&mut thread, &event);
        }
        self.threads[place] = thread;
    }

    fn one(&mut self, number: u32, event: &Event<'_>) {
        let place = self.place_of(number);
        let mut thread = core::mem::take(&mut self.threads[place]);
        self.event(&mut thread, event);
        self.threads[place] = thread;
    }

    fn event(&mut self, thread: &mut Thread, event: &Event<'_>) {
        let seen = self.kinds.see(event);
        let time = self.process.timeline().nanoseconds(event.ticks);
        let is_inside = self.range.contains(&time);
        let of_memory = self.memory.see(event);
        if let Some(told) = of_memory {
            let at = (event.ticks, thread.number);
            self.memory.tell(at, told, thread.open.innermost(), is_inside);
        }
        let Some(group) = thread.group else { return };
        let group = &mut self.groups[group];
        group.events += u64::from(is_inside && (seen != Seen::Nothing || of_memory.is_some()));
        let is_open = matches!(seen, Seen::Open { .. });
        if !is_open {
            group.spans.settle(&mut thread.open);
        }
        while thread.losses.last().is_some_and(|lost| event.ticks > *lost) {
            // An open says itself what is still there.
            if !is_open {
                group.spans.cut(&mut thread.open, None);
            }
            thread.losses.pop();
        }
        let time = thread.open.advance(time);
        if !is_open {
            thread.open.saw();
        }
        match seen {
            Seen::Begin { frame } => {
                group.spans.begin(&mut thread.open, frame, time);
                group.has_spans = true;
            }
            Seen::Open { frame, depth } => {
                group.spans.open(&mut thread.open, (frame, depth), time);
                group.has_spans = true;
            }
            Seen::End => group.spans.end(&mut thread.open, time),
            Seen::Sample { stack, weight } if is_inside && self.wants_samples => {
                group.samples.add(place(stack, thread), weight);
            }
            Seen::Sample { .. } | Seen::Nothing => {}
        }
        if let (Some(MemoryEvent::Allocate(taken) | MemoryEvent::Map(taken)), MemoryCosts::Counted(_)) =
            (of_memory, &self.memory)
            && is_inside
            && taken.device == self.options.memory_device()
        {
            group.allocated.add(place(taken.stack, thread), i64::try_from(taken.size).unwrap_or(i64::MAX));
        }
    }

    /// Where the thread with this number is in `threads`.
    fn place_of(&mut self, number: u32) -> usize {
        if let Some(place) = self.by_number.get(&number) {
            return *place;
        }
        let thread = self.new_thread(number);
        self.threads.push(thread);
        self.by_number.insert(number, self.threads.len() - 1);
        self.threads.len() - 1
    }

    fn new_thread(&mut self, number: u32) -> Thread {
        if !self.options.takes(self.process.dictionary().thread(number)) {
            return Thread { number, ..Thread::default() };
        }
        let own = (self.options.grouping == Grouping::Threads).then_some(number);
        let found = self.groups.iter().position(|group| group.thread == own);
        let group = found.unwrap_or_else(|| {
            self.groups.push(GroupCosts::new(own, self.range.clone()));
            self.groups.len() - 1
        });
        Thread { number, group: Some(group), open: OpenSpans::default(), losses: losses(self.process, number) }
    }

    fn finish(mut self, missing: Missing) -> Collected {
        let last_ticks = self.threads.iter().filter_map(|thread| self.process.last_ticks(thread.number)).max();
        let memory = core::mem::replace(&mut self.memory, MemoryCosts::None);
        let is_kept = matches!(memory, MemoryCosts::Kept(_));
        let (places, totals) = memory.finish(self.options, last_ticks.unwrap_or(0));
        for known in &places {
            let thread = self.place_of(known.place.thread);
            if let Some(group) = self.threads[thread].group {
                self.groups[group].add_figures(known);
                self.groups[group].events += if is_kept { known.figures.allocations } else { 0 };
            }
        }
        for mut thread in self.threads {
            let Some(group) = thread.group else { continue };
            let last = self.process.last_ticks(thread.number).map(|ticks| self.process.timeline().nanoseconds(ticks));
            let goes_on = last.is_some_and(|last| last >= self.range.end);
            self.groups[group].spans.cut(&mut thread.open, goes_on.then_some(self.range.end));
        }
        self.groups.iter_mut().for_each(|group| group.spans.seal());
        let (replaced_blocks, unknown_frees) = (totals.replaced, totals.unknown_frees);
        Collected { groups: self.groups, replaced_blocks, unknown_frees, missing }
    }
}

impl GroupCosts {
    pub(crate) fn new(thread: Option<u32>, range: Range<u64>) -> Self {
        let (samples, allocated, live, peak, temporary) = Default::default();
        let spans = SpanTree::new(range);
        Self { thread, spans, samples, allocated, live, peak, temporary, has_spans: false, events: 0 }
    }
}

fn place(stack: u32, thread: &Thread) -> Place {
    if stack == 0 { Place::Span(thread.open.innermost()) } else { Place::Stack(stack) }
}

/// Where events of a thread are missing, in ticks, the last place first.
pub(crate) fn losses(process: &ProcessRecording, thread: u32) -> Vec<u64> {
    let at = |lost: &Lost| if lost.first_ticks == 0 { lost.last_ticks } else { lost.first_ticks };
    let mut losses: Vec<u64> = process.losses().iter().filter(|lost| lost.thread == thread).map(at).collect();
    losses.sort_unstable_by_key(|ticks| core::cmp::Reverse(*ticks));
    losses
}
