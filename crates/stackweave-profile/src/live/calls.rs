//! Calls of a process that records, while their events come in.
//!
//! Hot file: an event costs what it costs in a profile of the whole recording.

use stackweave_core::EventKind;
use stackweave_recording::events::{Decoder, Event};
use stackweave_recording::file::EventBuffer;
use stackweave_recording::read::FollowBlocks;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::{Counted, GroupCosts, Measure, OpenSpans, Profile, RecordedNames, SpanTree};
use crate::live::names::NativeNames;
use crate::word_hash::WordMap;

const SECOND: u64 = 1_000_000_000;
/// Seconds beyond this are counted as the last: a clock that jumps must not take all memory.
const MOST_SECONDS: usize = 1 << 20;

/// What the calls of a process have cost so far.
#[derive(Debug)]
pub struct LiveCalls {
    blocks: FollowBlocks,
    decoder: Decoder,
    spans: SpanTree,
    threads: Vec<Thread>,
    by_number: WordMap<u32, usize>,
    /// How many of the process's losses are known to threads.
    losses_known: usize,
    counted: Counts,
}

#[derive(Debug, Default)]
struct Thread {
    open: OpenSpans,
    /// The ticks at which events of this thread are missing, the next one last.
    losses: Vec<u64>,
}

#[derive(Debug, Default)]
struct Counts {
    events: u64,
    calls: u64,
    per_second: Vec<u64>,
    last_ns: u64,
    has_memory: bool,
}

impl LiveCalls {
    /// Those of a process of which nothing was read.
    pub fn new(process: &ProcessRecording) -> Self {
        Self {
            blocks: FollowBlocks::default(),
            decoder: Decoder::of(process.dictionary()),
            spans: SpanTree::new(0..u64::MAX),
            threads: Vec::new(),
            by_number: WordMap::default(),
            losses_known: 0,
            counted: Counts::default(),
        }
    }

    /// Takes in the events that are new, those later than `until` (in ticks) not yet. Between two blocks it is asked whether it
    /// goes on.
    pub fn update(
        &mut self,
        process: &ProcessRecording,
        until: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ReadError> {
        self.decoder = Decoder::of(process.dictionary());
        self.learn_losses(process);
        let Self { blocks, decoder, spans, threads, by_number, counted, .. } = self;
        while let Some(block) = blocks.next_block(process, until)? {
            let number = block.thread();
            let place = *by_number.entry(number).or_insert_with(|| {
                threads.push(Thread { open: OpenSpans::default(), losses: process.loss_ticks(number) });
                threads.len() - 1
            });
            take_in((block, process), decoder, (spans, &mut threads[place]), counted);
            if !goes_on() {
                break;
            }
        }
        Ok(())
    }

    fn learn_losses(&mut self, process: &ProcessRecording) {
        for lost in &process.losses()[self.losses_known..] {
            if let Some(thread) = self.by_number.get(&lost.thread).map(|place| &mut self.threads[*place]) {
                thread.losses.push(lost.ticks());
                thread.losses.sort_unstable_by_key(|ticks| core::cmp::Reverse(*ticks));
            }
        }
        self.losses_known = process.losses().len();
    }

    /// How many events were gone through, of whatever kind.
    pub fn events_done(&self) -> u64 {
        self.blocks.events_done()
    }

    /// How many calls have begun.
    pub fn calls(&self) -> u64 {
        self.counted.calls
    }

    /// How many calls have begun in each second since the process began to record.
    pub fn per_second(&self) -> &[u64] {
        &self.counted.per_second
    }

    /// When the last event was, in nanoseconds since then.
    pub fn last_ns(&self) -> u64 {
        self.counted.last_ns
    }

    /// Whether the program has recorded what it allocates.
    pub fn has_memory(&self) -> bool {
        self.counted.has_memory
    }

    /// What could not be read.
    pub fn missing(&self) -> &Missing {
        self.blocks.missing()
    }

    /// The frames that have begun, by their numbers in the recording.
    pub fn frames(&self) -> impl Iterator<Item = u32> {
        self.spans.nodes().iter().skip(1).map(|node| node.frame)
    }

    /// What calls have cost so far. Those that are open count up to the last event of their thread.
    pub fn profile(&self, process: &ProcessRecording, known: &NativeNames) -> Profile {
        let spans = self.spans.as_cut(self.threads.iter().map(|thread| &thread.open));
        let events = self.counted.events;
        let costs = GroupCosts { spans, has_spans: true, events, ..GroupCosts::new(None, 0..u64::MAX) };
        let counted = Counted { measure: Measure::WallTime, device: EventKind::OWN_DEVICE };
        let frames = costs.frames(counted, process.dictionary());
        let mut names = RecordedNames::resolve(process, &frames, None);
        known.put_into(&mut names, &frames);
        costs.profile(counted, process, &names, false)
    }
}

fn take_in(
    (block, process): (&EventBuffer, &ProcessRecording),
    decoder: &Decoder,
    (spans, thread): (&mut SpanTree, &mut Thread),
    counted: &mut Counts,
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

impl Counts {
    fn second(&mut self, time: u64) -> &mut u64 {
        let second = usize::try_from(time / SECOND).unwrap_or(MOST_SECONDS).min(MOST_SECONDS);
        if self.per_second.len() <= second {
            self.per_second.resize(second + 1, 0);
        }
        &mut self.per_second[second]
    }
}
