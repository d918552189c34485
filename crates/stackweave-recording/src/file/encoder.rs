//! Encoding of the raw words of a process to the blocks of its section.

use stackweave_core::{EventKind, FrameNames};
use stackweave_store::StackTable;

use super::block::{BlockKind, write_block};
use super::call_fields::kind_in_file;
use super::definer::Definer;
use super::kind_column::Shape;
use super::nesting::{Nesting, NestingEffect};
use super::numbers::{AssignedNumbers, Numbers};
use super::pending_names::{PendingNames, ResolvedNames};
use super::small_blocks::{Lost, SectionEnd};
use super::start::ProcessStart;
use super::transpose::{LaneEvent, Transposer};
use crate::clock::ClockPoint;

/// A block of events ends when they had this many raw words.
const BLOCK_WORDS: usize = 1 << 18;
/// The maximum length of an event's byte string.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// The maximum length of the names of a kind and of its fields.
const MAX_KIND_NAMES: usize = 1 << 16;

/// Blocks of events, and of the definitions that they refer to.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    /// Definitions blocks, to be written before `events`. None may be left out.
    pub definitions: Vec<u8>,
    /// Events blocks.
    pub events: Vec<u8>,
    /// The effect of the events on the open spans, by thread, if [`Encoder::enable_nesting`] was called.
    pub nesting: Vec<(u32, Nesting)>,
}

/// The part of the words that was encoded: all of them, unless they contain something else than events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumed {
    /// The number of events, without those of observer-only kinds.
    pub events: u64,
    /// The number of their words.
    pub words: usize,
}

/// Writes one section. It knows what is defined already.
#[derive(Debug)]
pub struct Encoder {
    section: u32,
    kinds: Vec<EventKind>,
    /// By kind number.
    shapes: [Option<Shape>; 256],
    /// By kind number: whether its events are only for the observer, and not written.
    observer_only: [bool; 256],
    /// By kind number, if the nesting is enabled.
    effects: Option<Box<[NestingEffect; 256]>>,
    definer: Definer,
    /// The numbers that were assigned before the last [`Encoder::begin_generation`].
    previous: Option<AssignedNumbers>,
    columns: Transposer,
    payload: Vec<u8>,
}

impl Encoder {
    /// Returns an encoder for events whose stacks are in this table.
    pub fn new(stacks: &'static StackTable) -> Self {
        Self {
            section: 0,
            kinds: Vec::new(),
            shapes: [None; 256],
            observer_only: [false; 256],
            effects: None,
            definer: Definer::new(stacks),
            previous: None,
            columns: Transposer::default(),
            payload: Vec::new(),
        }
    }

    /// Enables [`Encoded::nesting`]. It must be called before any kind is declared.
    pub fn enable_nesting(&mut self) {
        self.effects = Some(Box::new([NestingEffect::Nothing; 256]));
    }

    /// Begins the section. It must be called first, and once.
    pub fn start(&mut self, start: &ProcessStart, out: &mut Vec<u8>) {
        let payload = start.payload();
        self.section = crc32fast::hash(&payload);
        self.definer.runs.section = self.section;
        self.block(BlockKind::Start, &payload, out);
    }

    /// Declares a kind of events. Numbers are assigned in the order of the calls, from 1; a kind that is declared again gets a
    /// new one. A call among its fields is written as two frames, `frame` and `caller`. Returns `None` if the kind is invalid or
    /// has two calls, its names are too long, or all numbers are assigned.
    pub fn kind(&mut self, kind: &EventKind) -> Option<u8> {
        let names: usize = kind.name.len() + kind.fields.iter().map(|field| field.name.len()).sum::<usize>();
        let written = kind_in_file(kind).filter(|_| names <= MAX_KIND_NAMES)?;
        let number = self.take_number(kind)?;
        if let Some(effects) = &mut self.effects {
            effects[usize::from(number)] = NestingEffect::of(kind);
        }
        self.definer.runs.kind(number, &written);
        Some(number)
    }

    /// Declares a kind for the observer only: neither the kind nor its events are written. Its number comes from the same
    /// sequence.
    pub fn observer_only_kind(&mut self, kind: &EventKind) -> Option<u8> {
        let number = self.take_number(kind)?;
        self.observer_only[usize::from(number)] = true;
        Some(number)
    }

    fn take_number(&mut self, kind: &EventKind) -> Option<u8> {
        let number = u8::try_from(self.kinds.len() + 1).ok()?;
        self.kinds.push(kind.clone());
        self.shapes[usize::from(number)] = Some(Shape::new(kind.words(), kind.has_bytes()));
        Some(number)
    }

    /// Defines a thread, or a new name of a thread. It is written with the next definitions.
    pub fn thread(&mut self, number: u32, tid: u32, name: &str) {
        self.definer.thread(number, tid, name);
    }

    /// Appends the events in these raw words, all of one thread, as whole blocks, and the definitions that they use for the
    /// first time. Stops at words that are no event of a declared kind.
    pub fn events(&mut self, thread: u32, words: &[u64], names: &dyn FrameNames, out: &mut Encoded) -> Consumed {
        let mut consumed = Consumed::default();
        let mut definer = self.definer.with_names(names, &mut out.definitions);
        let mut nesting = Nesting::default();
        while let Some((event, rest)) = next_event(&words[consumed.words..], &self.shapes) {
            consumed.words = words.len() - rest.len();
            if self.observer_only[usize::from(event.number)] {
                continue;
            }
            self.columns.push(&self.kinds, event, &mut definer);
            if let Some(effects) = &self.effects {
                nesting.add(effects[usize::from(event.number)], &event);
            }
            consumed.events += 1;
            if self.columns.words() >= BLOCK_WORDS {
                write_events(self.section, thread, (&mut self.columns, &mut self.payload), &mut out.events);
            }
        }
        write_events(self.section, thread, (&mut self.columns, &mut self.payload), &mut out.events);
        self.definer.runs.write(&mut out.definitions);
        if self.effects.is_some() {
            out.nesting.push((thread, nesting));
        }
        consumed
    }

    /// Appends definitions that could not be written with the events: the names of script frames, and the source frames of
    /// generated code. The calling thread must be allowed to call into interpreters. Threads and kinds that were declared since
    /// are written, too.
    ///
    /// If the encoder is in a lock that threads take while they hold an interpreter's lock, do not call this function. Call
    /// [`Encoder::take_pending`], then [`PendingNames::resolve`] without the lock, then [`Encoder::describe`].
    pub fn describe_pending(&mut self, names: &dyn FrameNames, out: &mut Vec<u8>) {
        let resolved = self.take_pending().resolve(names);
        self.describe(resolved, out);
    }

    /// Returns the frames whose names are pending, and removes them.
    pub fn take_pending(&mut self) -> PendingNames {
        PendingNames { generation: self.definer.generation, ..core::mem::take(&mut self.definer.pending) }
    }

    /// Appends resolved names.
    pub fn describe(&mut self, resolved: ResolvedNames, out: &mut Vec<u8>) {
        // Frames of an earlier generation have different numbers now.
        if resolved.generation == self.definer.generation {
            self.definer.describe(&resolved, out);
            self.definer.pending.lines.extend(resolved.unresolved);
        }
        self.definitions(out);
    }

    /// Begins a new generation of definitions: later events come with all definitions that they need, so earlier events and their
    /// definitions can be dropped together. Kinds and threads stay defined. The numbers differ from those of the previous
    /// generation until [`Encoder::overlaps_previous`] returns `true`.
    pub fn begin_generation(&mut self) {
        let assigned = self.definer.assigned();
        let base = if assigned.base == Numbers::default() { assigned.last } else { Numbers::default() };
        self.definer = self.definer.following(base);
        self.previous = Some(assigned);
    }

    /// Returns whether the previous generation has assigned one of the current numbers: then it must be dropped.
    pub fn overlaps_previous(&self) -> bool {
        self.previous.is_some_and(|previous| previous.overlaps(&self.definer.assigned()))
    }

    /// Notes that the previous generation is dropped.
    pub fn forget_previous(&mut self) {
        self.previous = None;
    }

    /// Runs `encode` with a separate generation of definitions, which other blocks do not refer to.
    pub fn with_separate_definitions<T>(&mut self, encode: impl FnOnce(&mut Self) -> T) -> T {
        let last = self.definer.assigned().last.max(self.previous.unwrap_or_default().last);
        let separate = self.definer.following(last);
        let definer = core::mem::replace(&mut self.definer, separate);
        let encoded = encode(self);
        self.definer = definer;
        encoded
    }

    /// Appends a clock point.
    pub fn clock(&mut self, point: &ClockPoint, out: &mut Vec<u8>) {
        self.block(BlockKind::Clock, &point.payload(), out);
    }

    /// Appends a notice of lost events.
    pub fn lost(&mut self, lost: &Lost, out: &mut Vec<u8>) {
        self.block(BlockKind::Lost, &lost.payload(), out);
    }

    /// Appends the declared kinds and threads that are not written yet.
    pub fn definitions(&mut self, out: &mut Vec<u8>) {
        self.definer.runs.write(out);
    }

    /// Ends the section, after the declarations that are not written yet.
    pub fn end(&mut self, end: &SectionEnd, out: &mut Vec<u8>) {
        self.definitions(out);
        self.block(BlockKind::End, &end.payload(), out);
    }

    /// Returns the tag of the section, which all its blocks have.
    pub fn section(&self) -> u32 {
        self.section
    }

    fn block(&self, kind: BlockKind, payload: &[u8], out: &mut Vec<u8>) {
        let written = write_block(kind, self.section, payload, out);
        debug_assert_eq!(written, Ok(()));
    }
}

/// Returns the first event in these words, and the words after it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the word consists of a number and ticks")]
fn next_event<'a>(words: &'a [u64], shapes: &[Option<Shape>; 256]) -> Option<(LaneEvent<'a>, &'a [u64])> {
    let (first, rest) = words.split_first()?;
    let number = *first as u8;
    let shape = shapes[usize::from(number)]?;
    let (fields, rest) = rest.split_at_checked(shape.words())?;
    let event = LaneEvent { number, ticks: first >> 8, fields, bytes: None };
    if !shape.has_bytes() {
        return Some((event, rest));
    }
    let (len, rest) = rest.split_first()?;
    let len = usize::try_from(*len).ok().filter(|len| *len <= MAX_EVENT_BYTES)?;
    let (words, rest) = rest.split_at_checked(len.div_ceil(8))?;
    Some((LaneEvent { bytes: Some((words, len)), ..event }, rest))
}

fn write_events(section: u32, thread: u32, from: (&mut Transposer, &mut Vec<u8>), out: &mut Vec<u8>) {
    let (columns, payload) = from;
    payload.clear();
    if columns.finish(thread, payload) {
        let written = write_block(BlockKind::Events, section, payload, out);
        debug_assert_eq!(written, Ok(()));
    }
}
