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
use super::time_order::OpenBlock;
use crate::file::{EventBuffer, RawEvent};

/// A reader's position in the events of all threads of a growing process.
#[derive(Debug, Default)]
pub struct FollowOrder {
    /// The number of blocks of the process that are in streams.
    taken: usize,
    streams: Vec<FollowedStream>,
    by_thread: HashMap<u32, usize>,
    /// The time of the next event of each stream with a block, except the current one.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
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
        while let Some((time, stream)) = turn {
            if time >= until {
                self.wait(time, stream);
                break;
            }
            self.current = Some(stream);
            if let Some(block) = self.streams[stream].open.as_mut() {
                if let Some((next, _)) = block.events.event_at(block.next) {
                    event(block.events.thread(), &next);
                }
                self.behind = self.behind.max(time.saturating_add(1));
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
                self.streams.push(FollowedStream::default());
                self.streams.len() - 1
            });
            let time = process.timeline().nanoseconds(events_block.first_ticks);
            self.late += u64::from(time < self.behind);
            let known = &mut self.streams[stream];
            known.event_blocks.push_back(*events_block);
            if !known.waits && self.current != Some(stream) {
                known.waits = true;
                self.waiting.push(Reverse((time, stream)));
            }
        }
        self.taken = process.section().event_blocks.len();
    }

    fn next_waiting(&mut self) -> Option<(u64, usize)> {
        let Reverse((time, stream)) = self.waiting.pop()?;
        self.streams[stream].waits = false;
        Some((time, stream))
    }

    /// Puts a stream into the heap until its time, unless it is the current one, which is never in the heap.
    fn wait(&mut self, time: u64, stream: usize) {
        if self.current != Some(stream) {
            self.streams[stream].waits = true;
            self.waiting.push(Reverse((time, stream)));
        }
    }

    /// Returns the time of the next event of `stream`; a lower bound if its block is not open yet.
    fn next_time(&self, process: &ProcessRecording, stream: usize) -> Option<u64> {
        let FollowedStream { event_blocks, open, .. } = &self.streams[stream];
        let ticks = match open {
            Some(block) => block.ticks,
            None => event_blocks.front().map(|events_block| events_block.first_ticks),
        };
        Some(process.timeline().nanoseconds(ticks?))
    }

    /// Returns the stream with the earliest event, and the time of that: `stream`, which is not in the heap, or an earlier one. If
    /// the next event of `stream` is not written yet, streams at `until` or later are not returned.
    fn turn_after(&mut self, process: &ProcessRecording, stream: usize, until: u64) -> Option<(u64, usize)> {
        let time = self.next_time(process, stream);
        let Some(mut first) = self.waiting.peek_mut() else { return Some((time?, stream)) };
        let turn = match time {
            None if first.0.0 >= until => return None,
            None => PeekMut::pop(first).0,
            Some(time) if first.0.0 < time => {
                let turn = mem::replace(&mut *first, Reverse((time, stream))).0;
                self.streams[stream].waits = true;
                turn
            }
            Some(time) => return Some((time, stream)),
        };
        self.streams[turn.1].waits = false;
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
