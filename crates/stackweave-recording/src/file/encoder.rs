//! From the words of a process to the blocks of its section.

use stackweave_core::{EventKind, Names};
use stackweave_store::StackTable;

use super::block::{BlockKind, write_block};
use super::points::{End, Lost};
use super::recorded::RecordedThread;
use super::start::Start;
use crate::clock::ClockPoint;

/// Blocks for events, and for what they refer to.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    /// Definitions blocks, to be written before `events`, and never to be left out.
    pub definitions: Vec<u8>,
    /// Events blocks.
    pub events: Vec<u8>,
}

/// How much of the words was understood: all of them, unless something else than events was among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Events.
    pub events: u64,
    /// The words that they took.
    pub words: usize,
}

/// Writes one section. Remembers what was defined.
#[derive(Debug)]
pub struct Encoder {
    stacks: &'static StackTable,
    section: u32,
    kinds: Vec<EventKind>,
    threads: Vec<RecordedThread>,
}

impl Encoder {
    /// For events whose stacks are in this table.
    pub fn new(stacks: &'static StackTable) -> Self {
        Self { stacks, section: 0, kinds: Vec::new(), threads: Vec::new() }
    }

    /// Begins the section: to be called first, and once.
    pub fn start(&mut self, start: &Start, out: &mut Vec<u8>) {
        let payload = start.payload();
        self.section = crc32fast::hash(&payload);
        self.small_block(BlockKind::Start, &payload, out);
    }

    /// Declares a kind of events. Numbers are given in the order of the calls, from 1 on; also one that is declared
    /// again gets a new one. `None` if the kind is not sound, or all numbers are given.
    pub fn kind(&mut self, kind: &EventKind) -> Option<u8> {
        let number = u8::try_from(self.kinds.len() + 1).ok().filter(|_| kind.is_sound())?;
        self.kinds.push(kind.clone());
        Some(number)
    }

    /// Tells of a thread, or of a new name of one. Written with the next definitions.
    pub fn thread(&mut self, number: u32, tid: u32, name: &str) {
        self.threads.push(RecordedThread { number, tid, name: name.to_owned() });
    }

    /// Appends the events in these raw words, all of one thread, as whole blocks, and the definitions that they are
    /// the first to need. Stops where the words are no event of a declared kind.
    pub fn events(&mut self, thread: u32, words: &[u64], names: &dyn Names, out: &mut Encoded) -> Taken {
        let _ = (self.stacks, thread, words, names, out);
        Taken::default()
    }

    /// Appends definitions that could not be told with the events: what script frames are called, and what
    /// lies behind generated code. To be called by a thread that may call into interpreters. Threads and kinds that
    /// were declared since are told too.
    pub fn describe_pending(&mut self, names: &dyn Names, out: &mut Vec<u8>) {
        let _ = (&self, names, out);
    }

    /// Appends a clock point.
    pub fn clock(&mut self, point: &ClockPoint, out: &mut Vec<u8>) {
        self.small_block(BlockKind::Clock, &point.payload(), out);
    }

    /// Appends that events were lost.
    pub fn lost(&mut self, lost: &Lost, out: &mut Vec<u8>) {
        self.small_block(BlockKind::Lost, &lost.payload(), out);
    }

    /// Ends the section.
    pub fn end(&mut self, end: &End, out: &mut Vec<u8>) {
        self.small_block(BlockKind::End, &end.payload(), out);
    }

    /// The tag of the section, which all its blocks carry.
    pub fn section(&self) -> u32 {
        self.section
    }

    fn small_block(&self, kind: BlockKind, payload: &[u8], out: &mut Vec<u8>) {
        let written = write_block(kind, self.section, payload, out);
        debug_assert_eq!(written, Ok(()));
    }
}
