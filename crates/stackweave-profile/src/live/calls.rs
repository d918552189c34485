//! The calls of a process that is still recording.
//!
//! Hot file: an event costs no more than in a profile of the whole recording.

use stackweave_core::EventKind;
use stackweave_recording::events::{Decoder, Event};
use stackweave_recording::file::EventBuffer;
use stackweave_recording::read::FollowBlocks;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::{
    DeviceMeasure, FrameNamer, GroupCosts, Measure, OpenSpans, Profile, ProfileBuilder, SpanTree, View,
};
use crate::live::native_names::NativeNames;
use crate::word_hash::WordMap;

const SECOND: u64 = 1_000_000_000;
/// Later seconds are counted in the last one: a clock that jumps must not use unlimited memory.
const MAX_SECONDS: usize = 1 << 20;

/// The costs of a process's calls so far.
#[derive(Debug)]
pub struct LiveCalls {
    blocks: FollowBlocks,
    decoder: Decoder,
    spans: SpanTree,
    threads: Vec<LiveThread>,
    by_number: WordMap<u32, usize>,
    /// The number of losses of the process that have been assigned to threads.
    losses_known: usize,
    counted: CallCounts,
}

#[derive(Debug, Default)]
struct LiveThread {
    open: OpenSpans,
    /// The ticks at which events of this thread are missing, the next one last.
    losses: Vec<u64>,
}

#[derive(Debug, Default)]
struct CallCounts {
    events: u64,
    calls: u64,
    per_second: Vec<u64>,
    last_ns: u64,
    has_memory: bool,
}

impl LiveCalls {
    /// Creates the costs before anything was read.
    pub fn new(process: &ProcessRecording) -> Self {
        Self {
            blocks: FollowBlocks::default(),
            decoder: Decoder::of(process.dictionary()),
            spans: SpanTree::new(0..u64::MAX),
            threads: Vec::new(),
            by_number: WordMap::default(),
            losses_known: 0,
            counted: CallCounts::default(),
        }
    }

    /// Adds new events, except those later than `until` (in ticks). Calls `goes_on` between two blocks, and stops if it
    /// returns false.
    pub fn update(
        &mut self,
        process: &ProcessRecording,
        until: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ReadError> {
        self.decoder = Decoder::of(process.dictionary());
        self.assign_losses(process);
        let Self { blocks, decoder, spans, threads, by_number, counted, .. } = self;
        while let Some(block) = blocks.next_block(process, until)? {
            let number = block.thread();
            let index = *by_number.entry(number).or_insert_with(|| {
                threads.push(LiveThread { open: OpenSpans::default(), losses: process.loss_ticks(number) });
                threads.len() - 1
            });
            add_block((block, process), decoder, (spans, &mut threads[index]), counted);
            if !goes_on() {
                break;
            }
        }
        Ok(())
    }

    fn assign_losses(&mut self, process: &ProcessRecording) {
        for lost in &process.losses()[self.losses_known..] {
            if let Some(thread) = self.by_number.get(&lost.thread).map(|index| &mut self.threads[*index]) {
                thread.losses.push(lost.ticks());
                thread.losses.sort_unstable_by_key(|ticks| core::cmp::Reverse(*ticks));
            }
        }
        self.losses_known = process.losses().len();
    }

    /// Returns the number of events that were read, of any kind.
    pub fn events_done(&self) -> u64 {
        self.blocks.events_done()
    }

    /// Returns the number of calls that have begun.
    pub fn calls(&self) -> u64 {
        self.counted.calls
    }

    /// Returns how many calls have begun in each second since the process began to record.
    pub fn per_second(&self) -> &[u64] {
        &self.counted.per_second
    }

    /// Returns the time of the last event, in nanoseconds since then.
    pub fn last_ns(&self) -> u64 {
        self.counted.last_ns
    }

    /// Returns whether the program has recorded allocations.
    pub fn has_memory(&self) -> bool {
        self.counted.has_memory
    }

    /// Returns what could not be read.
    pub fn missing(&self) -> &Missing {
        self.blocks.missing()
    }

    /// Returns the frames that have begun, by their numbers in the recording.
    pub fn frames(&self) -> impl Iterator<Item = u32> {
        self.spans.nodes().iter().skip(1).map(|node| node.frame)
    }

    /// Returns the costs of calls so far. Open calls count up to the last event of their thread.
    pub fn profile(&self, process: &ProcessRecording, known: &NativeNames) -> Profile {
        let spans = self.spans.as_cut(self.threads.iter().map(|thread| &thread.open));
        let events = self.counted.events;
        let costs = GroupCosts { spans, has_spans: true, events, ..GroupCosts::new(None, 0..u64::MAX) };
        let counted = DeviceMeasure { measure: Measure::WallTime, device: EventKind::OWN_DEVICE };
        let mut builder = ProfileBuilder::new(View::all());
        builder.add_named(FrameNamer::with_known(process, known), false);
        builder.profile(&[(0, &costs)], counted)
    }
}

fn add_block(
    (block, process): (&EventBuffer, &ProcessRecording),
    decoder: &Decoder,
    (spans, thread): (&mut SpanTree, &mut LiveThread),
    counted: &mut CallCounts,
) {
    let mut last = 0;
    for raw in block {
        let event = decoder.decode(&raw);
        let time = process.timeline().nanoseconds(raw.ticks);
        counted.events += u64::from(event.is_of_time());
        let time = thread.open.pass(spans, &mut thread.losses, (raw.ticks, time), &event);
        spans.add(&mut thread.open, &event, time);
        last = time;
        match event {
            Event::Begin(_) => {
                counted.calls += 1;
                *counted.second(time) += 1;
            }
            Event::Allocate(_) => counted.has_memory |= event.changes_heap(),
            _ => {}
        }
    }
    counted.last_ns = counted.last_ns.max(last);
}

impl CallCounts {
    fn second(&mut self, time: u64) -> &mut u64 {
        let second = usize::try_from(time / SECOND).unwrap_or(MAX_SECONDS).min(MAX_SECONDS);
        if self.per_second.len() <= second {
            self.per_second.resize(second + 1, 0);
        }
        &mut self.per_second[second]
    }
}
