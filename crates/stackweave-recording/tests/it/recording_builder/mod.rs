//! Recordings that tests build block by block, with their expected content.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use stackweave_core::{EventKind, Field, FieldType, NoNames, Role};
use stackweave_recording::events;
use stackweave_recording::file::{
    ClockPoint, Encoded, Encoder, EndReason, EventBuffer, LossReason, Lost, ProcessStart, RecordingMode, SectionEnd,
};
use stackweave_recording::read::RecordingSource;
use stackweave_recording::{Missing, ProcessRecording, Recording};
use stackweave_store::StackTable;
use stackweave_testkit::random::Random;

static STACKS: StackTable = StackTable::new();

/// `step(value)`, the first kind of every recording that is built here.
pub(crate) const STEP: u64 = 1;
/// `note(frame, stack, details)`, the second.
pub(crate) const NOTE: u64 = 2;

/// The recorded events of each thread: ticks and value of each.
pub(crate) type Steps = BTreeMap<u32, Vec<(u64, u64)>>;

/// The content of a block that was built.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BuiltBlock {
    Start,
    Definitions,
    Events(u32, Vec<(u64, u64)>),
    Other,
}

/// Builds the recording of one process, block by block.
pub(crate) struct RecordingBuilder {
    encoder: Encoder,
    pub(crate) bytes: Vec<u8>,
    pub(crate) blocks: Vec<(Range<usize>, BuiltBlock)>,
}

impl RecordingBuilder {
    /// Returns a builder for a process that began to record at this time of both clocks; a tick is a nanosecond.
    pub(crate) fn new(pid: u32, started_ns: u32) -> Self {
        let start =
            ProcessStart { started_wall_ns: started_ns.into(), started_monotonic_ns: started_ns.into(), ..start(pid) };
        Self::of(&start)
    }

    pub(crate) fn of(start: &ProcessStart) -> Self {
        let mut builder = Self { encoder: Encoder::new(&STACKS), bytes: Vec::new(), blocks: Vec::new() };
        builder.add(BuiltBlock::Start, |encoder, out| encoder.start(start, out));
        let value = Field::new("value", FieldType::Unsigned);
        let step = EventKind { name: "step".into(), role: Role::Instant, fields: vec![value].into() };
        assert_eq!(builder.encoder.kind(&step).map(u64::from), Some(STEP));
        assert_eq!(builder.encoder.kind(&events::INSTANT_WITH).map(u64::from), Some(NOTE));
        builder
    }

    fn add(&mut self, built: BuiltBlock, write: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        let from = self.bytes.len();
        write(&mut self.encoder, &mut self.bytes);
        if self.bytes.len() > from {
            self.blocks.push((from..self.bytes.len(), built));
        }
    }

    pub(crate) fn thread(&mut self, number: u32, name: &str) {
        self.encoder.thread(number, 1_000 + number, name);
    }

    /// Adds events with one value each.
    pub(crate) fn steps(&mut self, thread: u32, steps: &[(u64, u64)]) {
        let words: Vec<u64> = steps.iter().flat_map(|(ticks, value)| [ticks << 8 | STEP, *value]).collect();
        self.words(thread, &words, steps.to_vec());
    }

    /// Adds one event with a label as its frame, a stack and a text.
    pub(crate) fn note(&mut self, thread: u32, ticks: u64, name: &str, text: &str) {
        let frame = stackweave_store::label(name, "built.py", 1).unwrap();
        let stack = STACKS.intern(&[frame]).unwrap();
        let mut words = vec![ticks << 8 | NOTE, frame.to_bits(), stack.get().into(), text.len() as u64];
        words.extend(text.as_bytes().chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        }));
        self.words(thread, &words, vec![(ticks, u64::MAX)]);
    }

    fn words(&mut self, thread: u32, words: &[u64], steps: Vec<(u64, u64)>) {
        let mut out = Encoded::default();
        let consumed = self.encoder.events(thread, words, &NoNames, &mut out);
        assert_eq!((consumed.events, consumed.words), (steps.len() as u64, words.len()));
        self.add(BuiltBlock::Definitions, |_, bytes| bytes.extend_from_slice(&out.definitions));
        self.add(BuiltBlock::Events(thread, steps), |_, bytes| bytes.extend_from_slice(&out.events));
    }

    pub(crate) fn clock(&mut self, ticks: u64, monotonic_ns: u64) {
        let wall_ns = i64::try_from(monotonic_ns).unwrap();
        let point = ClockPoint { ticks, monotonic_ns, wall_ns, width_ns: 20 };
        self.add(BuiltBlock::Other, |encoder, out| encoder.clock(&point, out));
    }

    pub(crate) fn lost(&mut self, reason: LossReason, count: u64) {
        let lost = Lost { reason, count, thread: 1, first_ticks: 0, last_ticks: 9 };
        self.add(BuiltBlock::Other, |encoder, out| encoder.lost(&lost, out));
    }

    pub(crate) fn end(mut self) -> Self {
        let end = SectionEnd { events: 0, lost: 0, residual_ns: 0, reason: EndReason::Stopped };
        self.add(BuiltBlock::Other, |encoder, out| encoder.end(&end, out));
        self
    }

    /// Returns the events of all blocks for which `is_intact` holds.
    pub(crate) fn steps_where(&self, mut is_intact: impl FnMut(&Range<usize>) -> bool) -> Steps {
        let mut steps = Steps::new();
        for (range, built) in &self.blocks {
            if let (BuiltBlock::Events(thread, events), true) = (built, is_intact(range)) {
                steps.entry(*thread).or_default().extend(events);
            }
        }
        steps
    }

    pub(crate) fn all_steps(&self) -> Steps {
        self.steps_where(|_| true)
    }
}

pub(crate) fn start(pid: u32) -> ProcessStart {
    ProcessStart {
        pid,
        host: "example".into(),
        boot_id: "one-boot".into(),
        ticks_per_second: 1_000_000_000,
        command_line: vec!["program".into(), "--fast".into()],
        mode: RecordingMode::Whole,
        ..ProcessStart::default()
    }
}

/// Builds the recording of a process with `threads` threads and `blocks` blocks, whose ticks increase on each thread.
pub(crate) fn busy(pid: u32, seed: u64, threads: u32, blocks: usize) -> RecordingBuilder {
    let mut random = Random::new(seed);
    let mut builder = RecordingBuilder::new(pid, 1_000 + pid);
    let mut ticks = vec![0; threads as usize];
    for block in 0..blocks {
        let thread = random.below(ticks.len());
        let steps: Vec<(u64, u64)> = (0..=random.below(40))
            .map(|step| {
                ticks[thread] += random.below(1_000) as u64;
                (ticks[thread], (block * 1_000 + step) as u64)
            })
            .collect();
        builder.steps(u32::try_from(thread).unwrap() + 1, &steps);
        if block % 7 == 3 {
            builder.note(u32::try_from(thread).unwrap() + 1, ticks[thread], &format!("note {block}"), "{\"a\": 1}");
        }
    }
    builder
}

pub(crate) fn open_bytes(bytes: &[u8]) -> Result<Recording, stackweave_recording::OpenError> {
    let source: Arc<dyn RecordingSource> = Arc::new(Arc::<[u8]>::from(bytes));
    Recording::from_source(&source, Path::new("built.swv"))
}

/// Returns the value of a step; the largest number for a note.
pub(crate) fn value_of(process: &ProcessRecording, event: &stackweave_recording::file::RawEvent<'_>) -> u64 {
    match u64::from(event.kind) {
        STEP => event.words[0],
        NOTE => {
            assert_eq!(event.bytes, Some(&b"{\"a\": 1}"[..]));
            assert!(process.dictionary().kind(2).is_none_or(|kind| kind.name == "instant-with"));
            u64::MAX
        }
        other => panic!("kind {other}"),
    }
}

fn add_block(process: &ProcessRecording, events: &EventBuffer, to: &mut Steps) {
    let thread = to.entry(events.thread()).or_default();
    thread.extend(events.iter().map(|event| (event.ticks, value_of(process, &event))));
}

/// Returns all events of a process by thread, and what could not be read.
pub(crate) fn visited(process: &ProcessRecording) -> (Steps, Missing) {
    let mut steps = Steps::new();
    let missing = process.visit(None, &mut |_| (), &mut |events| {
        add_block(process, events, &mut steps);
        ControlFlow::Continue(())
    });
    (steps, missing.unwrap())
}

/// Returns all events of a process, in which no block may be damaged.
pub(crate) fn steps_of(process: &ProcessRecording) -> Steps {
    let (steps, missing) = visited(process);
    assert_eq!(missing, Missing::default());
    steps
}
