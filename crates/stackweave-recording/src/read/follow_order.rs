//! The events of a growing process in time order.
//!
//! The order is that of [`TimeOrder`](super::TimeOrder) for the complete file, provided that no event is added that is earlier than
//! those of previous calls.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::mem;

use super::error::ReadError;
use super::index::EventsBlock;
use super::missing::Missing;
use super::process::{BlockReader, ProcessRecording};
use super::time_order::{OpenBlock, Turn};
use crate::file::{EventBuffer, RawEvent};

/// A reader's position in the events of all threads of a growing process.
#[derive(Debug, Default)]
pub struct FollowOrder {
    /// The number of blocks of the process that are in streams.
    taken: usize,
    streams: Vec<FollowedStream>,
    by_thread: HashMap<u32, usize>,
    /// The next event of each stream with a block, except the current one.
    waiting: BinaryHeap<Reverse<Turn<u64>>>,
    /// The stream of the last event.
    current: Option<usize>,
    /// The time after the latest event that was returned, in nanoseconds.
    behind: u64,
    late: u64,
    events_done: u64,
    reader: BlockReader,
    spare: Vec<EventBuffer>,
    missing: Missing,
}

/// The blocks of one thread.
#[derive(Debug, Default)]
struct FollowedStream {
    thread: u32,
    event_blocks: VecDeque<EventsBlock>,
    open: Option<OpenBlock>,
    /// Whether it is in the heap.
    waits: bool,
}

impl FollowOrder {
    /// Calls `event` for all events before `until`, in nanoseconds since the process's base. A block that is added later, but begins
    /// earlier than the last of them, is late: its events follow in the next call.
    pub fn visit_until(
        &mut self,
        process: &ProcessRecording,
        until: u64,
        event: &mut dyn FnMut(u32, &RawEvent<'_>),
    ) -> Result<(), ReadError> {
        self.take_in(process);
        let mut turn = match self.current {
            Some(stream) => self.turn_after(process, stream, until),
            None => self.next_waiting(),
        };
        while let Some(next) = turn {
            let Turn { time_ns, stream, .. } = next;
            if time_ns >= until {
                self.wait(next);
                break;
            }
            self.current = Some(stream);
            if let Some(block) = self.streams[stream].open.as_mut() {
                if let Some((next, _)) = block.events.event_at(block.next) {
                    event(block.events.thread(), &next);
                }
                self.behind = self.behind.max(time_ns.saturating_add(1));
                self.events_done += 1;
                self.step(stream);
            } else {
                // A block may begin later than its head says, and may be damaged.
                self.open(process, stream)?;
            }
            turn = self.turn_after(process, stream, until);
        }
        Ok(())
    }

    /// Returns the number of late blocks, whose events are earlier than some that were returned before.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the number of events that were returned.
    pub fn events_done(&self) -> u64 {
        self.events_done
    }

    /// Returns what was skipped so far because it is damaged.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Adds the new blocks of the process to streams.
    fn take_in(&mut self, process: &ProcessRecording) {
        for events_block in &process.section().event_blocks[self.taken..] {
            let stream = *self.by_thread.entry(events_block.thread).or_insert_with(|| {
                self.streams.push(FollowedStream { thread: events_block.thread, ..FollowedStream::default() });
                self.streams.len() - 1
            });
            let ticks = events_block.first_ticks;
            let time_ns = process.timeline().nanoseconds(ticks);
            self.late += u64::from(time_ns < self.behind);
            let known = &mut self.streams[stream];
            known.event_blocks.push_back(*events_block);
            if !known.waits && self.current != Some(stream) {
                known.waits = true;
                self.waiting.push(Reverse(Turn { time_ns, ticks, thread: events_block.thread, stream }));
            }
        }
        self.taken = process.section().event_blocks.len();
    }

    fn next_waiting(&mut self) -> Option<Turn<u64>> {
        let Reverse(next) = self.waiting.pop()?;
        self.streams[next.stream].waits = false;
        Some(next)
    }

    /// Puts a stream into the heap until its turn, unless it is the current one, which is never in the heap.
    fn wait(&mut self, next: Turn<u64>) {
        if self.current != Some(next.stream) {
            self.streams[next.stream].waits = true;
            self.waiting.push(Reverse(next));
        }
    }

    /// Returns the next event of `stream`; a lower bound if its block is not open yet.
    fn next_turn(&self, process: &ProcessRecording, stream: usize) -> Option<Turn<u64>> {
        let FollowedStream { thread, event_blocks, open, .. } = &self.streams[stream];
        let ticks = match open {
            Some(block) => block.ticks,
            None => event_blocks.front().map(|events_block| events_block.first_ticks),
        }?;
        Some(Turn { time_ns: process.timeline().nanoseconds(ticks), ticks, thread: *thread, stream })
    }

    /// Returns the earliest event: that of `stream`, which is not in the heap, or an earlier one. If the next event of `stream` is
    /// not written yet, events at `until` or later are not returned.
    fn turn_after(&mut self, process: &ProcessRecording, stream: usize, until: u64) -> Option<Turn<u64>> {
        let next = self.next_turn(process, stream);
        let Some(mut first) = self.waiting.peek_mut() else { return next };
        let turn = match next {
            None if first.0.time_ns >= until => return None,
            None => PeekMut::pop(first).0,
            Some(next) if first.0 < next => {
                let turn = mem::replace(&mut *first, Reverse(next)).0;
                self.streams[stream].waits = true;
                turn
            }
            Some(next) => return Some(next),
        };
        self.streams[turn.stream].waits = false;
        self.current = None;
        Some(turn)
    }

    fn open(&mut self, process: &ProcessRecording, stream: usize) -> Result<(), ReadError> {
        let Some(events_block) = self.streams[stream].event_blocks.front().copied() else { return Ok(()) };
        let mut events = self.spare.pop().unwrap_or_default();
        let read = process.read(&events_block, &mut self.reader, &mut events)?;
        self.streams[stream].event_blocks.pop_front();
        if read.is_err() {
            self.missing.damaged.add(events_block.range());
            self.spare.push(events);
            return Ok(());
        }
        let block = OpenBlock::new(events);
        if block.ticks.is_some() {
            self.streams[stream].open = Some(block);
        } else {
            self.spare.push(block.events);
        }
        Ok(())
    }

    fn step(&mut self, stream: usize) {
        let open = &mut self.streams[stream].open;
        if let Some(block) = open {
            block.step();
            if block.ticks.is_none() {
                self.spare.extend(open.take().map(|block| block.events));
            }
        }
    }
}
