//! The events of a process that grows, the earliest first.
//!
//! It gives the same order as [`TimeOrder`](super::TimeOrder) does once all is there, if nothing comes that is earlier than
//! what was asked for before.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::mem;

use super::error::ReadError;
use super::index::Place;
use super::missing::Missing;
use super::process::{BlockReader, ProcessRecording};
use super::time_order::OpenBlock;
use crate::file::{EventBuffer, RawEvent};

/// How far somebody has come in the events of all threads of a process that grows.
#[derive(Debug, Default)]
pub struct FollowOrder {
    /// How many blocks of the process are in streams.
    taken: usize,
    streams: Vec<Stream>,
    by_thread: HashMap<u32, usize>,
    /// When each stream goes on that has a block, but for the current one.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// The stream whose turn it was last.
    current: Option<usize>,
    /// Behind the latest event that was given, in nanoseconds.
    behind: u64,
    late: u64,
    events_done: u64,
    reader: BlockReader,
    spare: Vec<EventBuffer>,
    missing: Missing,
}

/// The blocks of one thread.
#[derive(Debug, Default)]
struct Stream {
    places: VecDeque<Place>,
    open: Option<OpenBlock>,
    /// Whether it has an entry in the heap.
    waits: bool,
}

impl FollowOrder {
    /// Gives all events that are earlier than `until`, in nanoseconds since the process's base. A block that
    /// comes into the file later, and begins earlier than the last of them, is late: it is given with the next call.
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
                // A block may begin later than it says, and may be damaged.
                self.open(process, stream)?;
            }
            turn = self.turn_after(process, stream, until);
        }
        Ok(())
    }

    /// How many blocks have come too late: the events of other threads that happened after theirs had been given by then.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// How many events are done.
    pub fn events_done(&self) -> u64 {
        self.events_done
    }

    /// What had to be left out so far because it is damaged.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Puts the new blocks of the process into streams.
    fn take_in(&mut self, process: &ProcessRecording) {
        for place in &process.section().places[self.taken..] {
            let stream = *self.by_thread.entry(place.thread).or_insert_with(|| {
                self.streams.push(Stream::default());
                self.streams.len() - 1
            });
            let time = process.timeline().nanoseconds(place.first_ticks);
            self.late += u64::from(time < self.behind);
            let known = &mut self.streams[stream];
            known.places.push_back(*place);
            if !known.waits && self.current != Some(stream) {
                known.waits = true;
                self.waiting.push(Reverse((time, stream)));
            }
        }
        self.taken = process.section().places.len();
    }

    fn next_waiting(&mut self) -> Option<(u64, usize)> {
        let Reverse((time, stream)) = self.waiting.pop()?;
        self.streams[stream].waits = false;
        Some((time, stream))
    }

    /// Leaves a stream waiting whose time has not come, unless it is the current one, which is in no heap.
    fn wait(&mut self, time: u64, stream: usize) {
        if self.current != Some(stream) {
            self.streams[stream].waits = true;
            self.waiting.push(Reverse((time, stream)));
        }
    }

    /// When `stream` goes on, at the earliest if its block is not open yet.
    fn next_time(&self, process: &ProcessRecording, stream: usize) -> Option<u64> {
        let Stream { places, open, .. } = &self.streams[stream];
        let ticks = match open {
            Some(block) => block.ticks,
            None => places.front().map(|place| place.first_ticks),
        };
        Some(process.timeline().nanoseconds(ticks?))
    }

    /// The stream whose turn it is, and when it goes on: `stream`, which is not in the heap, unless another is earlier.
    /// Where it is not known when `stream` goes on, no other has its turn from `until` on.
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
        let Some(place) = self.streams[stream].places.front().copied() else { return Ok(()) };
        let mut events = self.spare.pop().unwrap_or_default();
        let read = process.read(&place, &mut self.reader, &mut events)?;
        self.streams[stream].places.pop_front();
        if read.is_err() {
            self.missing.damaged.add(place.range());
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
