//! The events of many threads in time order.
//!
//! Each thread of each process is a stream of blocks. A heap has the time of the next event of each stream. A block is read when
//! its time comes, so at most one block of each thread that was active at that time is in memory.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};
use std::mem;
use std::ops::{ControlFlow, Range};

use super::error::ReadError;
use super::index::EventsBlock;
use super::missing::Missing;
use super::process::{BlockReader, ProcessRecording};
use super::time_axis::TimeAxis;
use crate::file::{EventBuffer, RawEvent};

/// An event with its time, process and thread.
#[derive(Clone, Copy, Debug)]
pub struct TimedEvent<'a> {
    /// The time on the axis of the visit.
    pub time_ns: i64,
    /// The process of the event.
    pub process: &'a ProcessRecording,
    /// The number of the thread in its process.
    pub thread: u32,
    /// The event.
    pub event: RawEvent<'a>,
}

/// Returns the events of many threads one after another.
#[derive(Debug)]
pub struct TimeOrder {
    processes: Vec<ProcessRecording>,
    axis: TimeAxis,
    range: Option<Range<i64>>,
    streams: Vec<Stream>,
    /// The next event of each stream, except the stream of the last event.
    waiting: BinaryHeap<Reverse<Turn<i64>>>,
    /// The stream of the last event.
    current: Option<usize>,
    reader: BlockReader,
    /// Buffers for reuse.
    spare: Vec<EventBuffer>,
    missing: Missing,
    bytes_done: u64,
}

/// The position of a stream's next event among those of other streams. A nanosecond has several ticks; threads with the same
/// ticks follow in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn<Time> {
    pub(super) time_ns: Time,
    pub(super) ticks: u64,
    pub(super) thread: u32,
    pub(super) stream: usize,
}

/// The blocks of one thread.
#[derive(Debug)]
struct Stream {
    process: usize,
    thread: u32,
    /// The indices of the thread's blocks among those of the process.
    event_blocks: Vec<u32>,
    /// The number of completed blocks.
    done: usize,
    /// The current block.
    open: Option<OpenBlock>,
}

/// A block of events that is being read.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) events: EventBuffer,
    /// The offset of the next event, and the offset after it.
    pub(super) next: usize,
    behind: usize,
    /// The ticks of the next event, if there is one.
    pub(super) ticks: Option<u64>,
}

impl OpenBlock {
    pub(super) fn new(events: EventBuffer) -> Self {
        let mut block = Self { events, next: 0, behind: 0, ticks: None };
        block.step();
        block
    }

    /// Advances to the next event.
    pub(super) fn step(&mut self) {
        self.next = self.behind;
        let found = self.events.event_at(self.next);
        (self.ticks, self.behind) = found.map_or((None, self.next), |(event, behind)| (Some(event.ticks), behind));
    }
}

impl TimeOrder {
    pub(crate) fn new(
        processes: &[ProcessRecording],
        axis: TimeAxis,
        range: Option<Range<i64>>,
        threads: Option<&[u32]>,
    ) -> Self {
        let mut order = Self {
            processes: processes.to_vec(),
            axis,
            range,
            streams: Vec::new(),
            waiting: BinaryHeap::new(),
            current: None,
            reader: BlockReader::default(),
            spare: Vec::new(),
            missing: Missing::default(),
            bytes_done: 0,
        };
        for process in 0..processes.len() {
            order.add_streams(process, threads);
        }
        let first = |stream| order.next_turn(stream).map(Reverse);
        order.waiting = (0..order.streams.len()).filter_map(first).collect();
        order
    }

    /// Returns the next event; `None` at the end. After an error, the next call tries again.
    pub fn next_event(&mut self) -> Result<Option<TimedEvent<'_>>, ReadError> {
        let mut turn = match self.current.take() {
            Some(stream) => self.step(stream),
            None => self.waiting.pop().map(|Reverse(first)| first),
        };
        while let Some(next) = turn {
            let Turn { time_ns, stream, .. } = next;
            if self.streams[stream].open.is_none() {
                if let Err(error) = self.open(stream) {
                    self.waiting.push(Reverse(next));
                    return Err(error);
                }
                // A block may begin later than its head says, and may be damaged.
                turn = self.turn_after(stream);
            } else if self.range.as_ref().is_none_or(|range| range.contains(&time_ns)) {
                self.current = Some(stream);
                return Ok(self.event(stream, time_ns));
            } else {
                turn = self.step(stream);
            }
        }
        Ok(None)
    }

    /// Returns what was skipped so far because it is damaged.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Returns the number of bytes of completed blocks.
    pub fn bytes_done(&self) -> u64 {
        self.bytes_done
    }

    pub(crate) fn visit(
        mut self,
        progress: &mut dyn FnMut(u64),
        event: &mut dyn FnMut(TimedEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Missing, ReadError> {
        let mut reported = 0;
        while let Some(next) = self.next_event()? {
            if event(next).is_break() {
                return Ok(self.missing);
            }
            if self.bytes_done != reported {
                reported = self.bytes_done;
                progress(reported);
            }
        }
        progress(self.processes.iter().map(ProcessRecording::bytes).sum());
        Ok(self.missing)
    }

    fn add_streams(&mut self, process: usize, threads: Option<&[u32]>) {
        let mut by_thread = HashMap::new();
        for (number, events_block) in (0..).zip(&self.processes[process].section().event_blocks) {
            if threads.is_some_and(|threads| !threads.contains(&events_block.thread))
                || !self.may_matter(process, events_block)
            {
                continue;
            }
            let stream = *by_thread.entry(events_block.thread).or_insert_with(|| {
                let thread = events_block.thread;
                self.streams.push(Stream { process, thread, event_blocks: Vec::new(), done: 0, open: None });
                self.streams.len() - 1
            });
            self.streams[stream].event_blocks.push(number);
        }
    }

    /// Returns whether a block overlaps the range.
    fn may_matter(&self, process: usize, events_block: &EventsBlock) -> bool {
        self.range.as_ref().is_none_or(|range| {
            let process = &self.processes[process];
            self.axis.time_ns(process, events_block.first_ticks) < range.end
                && self.axis.time_ns(process, events_block.last_ticks) >= range.start
        })
    }

    /// Returns the current block of `stream`.
    fn events_block(&self, stream: usize) -> Option<EventsBlock> {
        let stream = &self.streams[stream];
        let number = *stream.event_blocks.get(stream.done)?;
        self.processes[stream.process].section().event_blocks.get(number as usize).copied()
    }

    /// Returns the next event of `stream`; a lower bound if its block is not open yet.
    fn next_turn(&self, stream: usize) -> Option<Turn<i64>> {
        let Stream { process, thread, open, .. } = &self.streams[stream];
        let ticks = match open {
            Some(block) => block.ticks,
            None => self.events_block(stream).map(|events_block| events_block.first_ticks),
        }?;
        Some(Turn { time_ns: self.axis.time_ns(&self.processes[*process], ticks), ticks, thread: *thread, stream })
    }

    /// Completes an event of `stream`. Returns the earliest event.
    fn step(&mut self, stream: usize) -> Option<Turn<i64>> {
        if let Some(block) = &mut self.streams[stream].open {
            block.step();
            if block.ticks.is_none() {
                self.close(stream);
            }
        }
        self.turn_after(stream)
    }

    /// Returns the earliest event: that of `stream`, which is not in the heap, or an earlier one.
    fn turn_after(&mut self, stream: usize) -> Option<Turn<i64>> {
        let next = self.next_turn(stream);
        let Some(mut first) = self.waiting.peek_mut() else { return next };
        match next {
            None => Some(PeekMut::pop(first).0),
            Some(next) if first.0 < next => Some(mem::replace(&mut *first, Reverse(next)).0),
            Some(next) => Some(next),
        }
    }

    /// Reads the current block of `stream`, and completes it if it is damaged or empty.
    fn open(&mut self, stream: usize) -> Result<(), ReadError> {
        let Some(events_block) = self.events_block(stream) else { return Ok(()) };
        let mut events = self.spare.pop().unwrap_or_default();
        let process = &self.processes[self.streams[stream].process];
        if process.read(&events_block, &mut self.reader, &mut events)?.is_err() {
            self.missing.damaged.add(events_block.range());
            self.spare.push(events);
            self.close(stream);
            return Ok(());
        }
        let block = OpenBlock::new(events);
        let is_empty = block.ticks.is_none();
        self.streams[stream].open = Some(block);
        if is_empty {
            self.close(stream);
        }
        Ok(())
    }

    /// Completes the current block of `stream`.
    fn close(&mut self, stream: usize) {
        let bytes =
            self.events_block(stream).map_or(0, |events_block| events_block.range().end - events_block.range().start);
        self.bytes_done += bytes;
        let stream = &mut self.streams[stream];
        stream.done += 1;
        self.spare.extend(stream.open.take().map(|block| block.events));
    }

    fn event(&self, stream: usize, time_ns: i64) -> Option<TimedEvent<'_>> {
        let Stream { process, open, .. } = &self.streams[stream];
        let OpenBlock { events, next, .. } = open.as_ref()?;
        let (event, _) = events.event_at(*next)?;
        Some(TimedEvent { time_ns, process: &self.processes[*process], thread: events.thread(), event })
    }
}
