//! From the words of a process to the blocks of its section.

use stackweave_core::{EventKind, Names};
use stackweave_store::StackTable;

use super::block::{BlockKind, write_block};
use super::call_fields::in_file;
use super::definer::Definer;
use super::kind_column::Shape;
use super::nesting::{Doing, Nesting};
use super::numbers::{Given, Numbers};
use super::pending::{Answered, Pending};
use super::points::{End, Lost};
use super::start::Start;
use super::transpose::{LaneEvent, Transposer};
use crate::clock::ClockPoint;

/// A block of events is ended when they took this many raw words.
const BLOCK_WORDS: usize = 1 << 18;
/// The longest byte string of an event.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// The most bytes that the names of a kind and of its fields may take.
const MAX_KIND_NAMES: usize = 1 << 16;

/// Blocks for events, and for what they refer to.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    /// Definitions blocks, to be written before `events`, and never to be left out.
    pub definitions: Vec<u8>,
    /// Events blocks.
    pub events: Vec<u8>,
    /// What the events do to what their threads have open, by thread, if that is asked for.
    pub nesting: Vec<(u32, Nesting)>,
}

/// How much of the words was understood: all of them, unless something else than events was among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Events, but for those of kinds that are not written.
    pub events: u64,
    /// The words that they took.
    pub words: usize,
}

/// Writes one section. Remembers what was defined.
#[derive(Debug)]
pub struct Encoder {
    section: u32,
    kinds: Vec<EventKind>,
    /// By kind number.
    shapes: [Option<Shape>; 256],
    /// By kind number: whether its events are left out.
    unwritten: [bool; 256],
    /// By kind number, if what is open is to be known.
    doings: Option<Box<[Doing; 256]>>,
    definer: Definer,
    /// The numbers that were given before the last [`Encoder::begin_generation`].
    previous: Option<Given>,
    columns: Transposer,
    payload: Vec<u8>,
}

impl Encoder {
    /// For events whose stacks are in this table.
    pub fn new(stacks: &'static StackTable) -> Self {
        Self {
            section: 0,
            kinds: Vec::new(),
            shapes: [None; 256],
            unwritten: [false; 256],
            doings: None,
            definer: Definer::new(stacks),
            previous: None,
            columns: Transposer::default(),
            payload: Vec::new(),
        }
    }

    /// Has [`Encoded::nesting`] told. To be called before any kind is declared.
    pub fn tell_nesting(&mut self) {
        self.doings = Some(Box::new([Doing::Nothing; 256]));
    }

    /// Begins the section: to be called first, and once.
    pub fn start(&mut self, start: &Start, out: &mut Vec<u8>) {
        let payload = start.payload();
        self.section = crc32fast::hash(&payload);
        self.definer.runs.section = self.section;
        self.block(BlockKind::Start, &payload, out);
    }

    /// Declares a kind of events. Numbers are given in the order of the calls, from 1 on; also one that is declared
    /// again gets a new one. A call among its fields is told as two frames, `frame` and `caller`. `None` if the kind is
    /// not sound or has two calls, its names are very long, or all numbers are given.
    pub fn kind(&mut self, kind: &EventKind) -> Option<u8> {
        let names: usize = kind.name.len() + kind.fields.iter().map(|field| field.name.len()).sum::<usize>();
        let told = in_file(kind).filter(|_| names <= MAX_KIND_NAMES)?;
        let number = self.take_number(kind)?;
        if let Some(doings) = &mut self.doings {
            doings[usize::from(number)] = Doing::of(kind);
        }
        self.definer.runs.kind(number, &told);
        Some(number)
    }

    /// Declares a kind whose events are passed over: neither they nor the kind are in the file. Its number is one of the
    /// same as all others'.
    pub fn unwritten_kind(&mut self, kind: &EventKind) -> Option<u8> {
        let number = self.take_number(kind)?;
        self.unwritten[usize::from(number)] = true;
        Some(number)
    }

    fn take_number(&mut self, kind: &EventKind) -> Option<u8> {
        let number = u8::try_from(self.kinds.len() + 1).ok()?;
        self.kinds.push(kind.clone());
        self.shapes[usize::from(number)] = Some(Shape::new(kind.words(), kind.has_bytes()));
        Some(number)
    }

    /// Tells of a thread, or of a new name of one. Written with the next definitions.
    pub fn thread(&mut self, number: u32, tid: u32, name: &str) {
        self.definer.thread(number, tid, name);
    }

    /// Appends the events in these raw words, all of one thread, as whole blocks, and the definitions that they are
    /// the first to need. Stops where the words are no event of a declared kind.
    pub fn events(&mut self, thread: u32, words: &[u64], names: &dyn Names, out: &mut Encoded) -> Taken {
        let mut taken = Taken::default();
        let mut asking = self.definer.asking(names, &mut out.definitions);
        let mut nesting = Nesting::default();
        while let Some((event, rest)) = next_event(&words[taken.words..], &self.shapes) {
            taken.words = words.len() - rest.len();
            if self.unwritten[usize::from(event.number)] {
                continue;
            }
            self.columns.push(&self.kinds, event, &mut asking);
            if let Some(doings) = &self.doings {
                nesting.add(doings[usize::from(event.number)], &event);
            }
            taken.events += 1;
            if self.columns.words() >= BLOCK_WORDS {
                write_events(self.section, thread, (&mut self.columns, &mut self.payload), &mut out.events);
            }
        }
        write_events(self.section, thread, (&mut self.columns, &mut self.payload), &mut out.events);
        self.definer.runs.write(&mut out.definitions);
        if self.doings.is_some() {
            out.nesting.push((thread, nesting));
        }
        taken
    }

    /// Appends definitions that could not be told with the events: what script frames are called, and what
    /// lies behind generated code. To be called by a thread that may call into interpreters. Threads and kinds that
    /// were declared since are told too.
    ///
    /// Who keeps the encoder in a lock that others wait for while they hold an interpreter's must not call this, but
    /// [`Encoder::take_pending`], then [`Pending::ask`] without the lock, then [`Encoder::describe`].
    pub fn describe_pending(&mut self, names: &dyn Names, out: &mut Vec<u8>) {
        let answered = self.take_pending().ask(names);
        self.describe(answered, out);
    }

    /// What is to be asked.
    pub fn take_pending(&mut self) -> Pending {
        Pending { generation: self.definer.generation, ..core::mem::take(&mut self.definer.pending) }
    }

    /// Appends what was answered.
    pub fn describe(&mut self, answered: Answered, out: &mut Vec<u8>) {
        // Frames of an earlier generation have other numbers by now.
        if answered.generation == self.definer.generation {
            self.definer.describe(&answered, out);
            self.definer.pending.lines.extend(answered.unasked);
        }
        self.definitions(out);
    }

    /// Forgets what was defined: events from now on come with all definitions that they need, so that earlier events and their
    /// definitions can be dropped together. Kinds and threads stay known. Their numbers are others than those of the generation
    /// before, as long as [`Encoder::overlaps_previous`] does not say otherwise.
    pub fn begin_generation(&mut self) {
        let given = self.definer.given();
        let base = if given.base == Numbers::default() { given.last } else { Numbers::default() };
        self.definer = self.definer.following(base);
        self.previous = Some(given);
    }

    /// Returns whether a number was given that the generation before has given too: that one must not be kept any longer.
    pub fn overlaps_previous(&self) -> bool {
        self.previous.is_some_and(|previous| previous.overlaps(&self.definer.given()))
    }

    /// Says that nothing of the generation before is kept.
    pub fn forget_previous(&mut self) {
        self.previous = None;
    }

    /// Runs `encode` with definitions of its own, which nothing outside refers to.
    pub fn aside<T>(&mut self, encode: impl FnOnce(&mut Self) -> T) -> T {
        let last = self.definer.given().last.max(self.previous.unwrap_or_default().last);
        let aside = self.definer.following(last);
        let definer = core::mem::replace(&mut self.definer, aside);
        let encoded = encode(self);
        self.definer = definer;
        encoded
    }

    /// Appends a clock point.
    pub fn clock(&mut self, point: &ClockPoint, out: &mut Vec<u8>) {
        self.block(BlockKind::Clock, &point.payload(), out);
    }

    /// Appends that events were lost.
    pub fn lost(&mut self, lost: &Lost, out: &mut Vec<u8>) {
        self.block(BlockKind::Lost, &lost.payload(), out);
    }

    /// Appends what was declared and is not written yet: kinds, threads and their names.
    pub fn definitions(&mut self, out: &mut Vec<u8>) {
        self.definer.runs.write(out);
    }

    /// Ends the section. What was declared and is not written yet comes before the end.
    pub fn end(&mut self, end: &End, out: &mut Vec<u8>) {
        self.definitions(out);
        self.block(BlockKind::End, &end.payload(), out);
    }

    /// The tag of the section, which all its blocks carry.
    pub fn section(&self) -> u32 {
        self.section
    }

    fn block(&self, kind: BlockKind, payload: &[u8], out: &mut Vec<u8>) {
        let written = write_block(kind, self.section, payload, out);
        debug_assert_eq!(written, Ok(()));
    }
}

/// The first event in these words, and the words after it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the word is taken apart")]
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
