//! Events of many threads, the earliest first.
//!
//! Each thread of each process is a stream of blocks. A heap knows when each stream goes on. A block is read when its
//! time has come, not before, so what is in memory is one block of each thread that was active at that moment.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};
use std::mem;
use std::ops::{ControlFlow, Range};

use super::error::ReadError;
use super::index::Place;
use super::missing::Missing;
use super::process::{BlockReader, ProcessRecording};
use super::time_axis::TimeAxis;
use crate::file::{EventBuffer, RawEvent};

/// An event, and when and where it happened.
#[derive(Clone, Copy, Debug)]
pub struct TimedEvent<'a> {
    /// On the axis of the visit.
    pub time_ns: i64,
    /// Whose it is.
    pub process: &'a ProcessRecording,
    /// The number of the thread in its process.
    pub thread: u32,
    /// What happened.
    pub event: RawEvent<'a>,
}

/// Gives the events of many threads one after another.
#[derive(Debug)]
pub struct TimeOrder {
    processes: Vec<ProcessRecording>,
    axis: TimeAxis,
    range: Option<Range<i64>>,
    streams: Vec<Stream>,
    /// When each stream goes on, but for the one that gave the last event.
    waiting: BinaryHeap<Reverse<(i64, usize)>>,
    /// The stream that gave the last event.
    current: Option<usize>,
    reader: BlockReader,
    /// Buffers that no stream needs now.
    spare: Vec<EventBuffer>,
    missing: Missing,
    bytes_done: u64,
}

/// The blocks of one thread.
#[derive(Debug)]
struct Stream {
    process: usize,
    /// Which of the process's blocks are its own.
    places: Vec<u32>,
    /// How many of them are done.
    done: usize,
    /// The block that is being read.
    open: Option<OpenBlock>,
}

/// A block of events that is being given out.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) events: EventBuffer,
    /// The place of the event that comes next, and the place behind it.
    pub(super) next: usize,
    behind: usize,
    /// The ticks of that event, if there is one.
    pub(super) ticks: Option<u64>,
}

impl OpenBlock {
    pub(super) fn new(events: EventBuffer) -> Self {
        let mut block = Self { events, next: 0, behind: 0, ticks: None };
        block.step();
        block
    }

    /// Leaves the next event behind.
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
        let first = |stream| order.next_time(stream).map(|time| Reverse((time, stream)));
        order.waiting = (0..order.streams.len()).filter_map(first).collect();
        order
    }

    /// The next event; `None` behind the last. What could not be read is tried again by the next call.
    pub fn next_event(&mut self) -> Result<Option<TimedEvent<'_>>, ReadError> {
        let mut turn = match self.current.take() {
            Some(stream) => self.step(stream),
            None => self.waiting.pop().map(|Reverse(first)| first),
        };
        while let Some((time_ns, stream)) = turn {
            if self.streams[stream].open.is_none() {
                if let Err(error) = self.open(stream) {
                    self.waiting.push(Reverse((time_ns, stream)));
                    return Err(error);
                }
                // A block may begin later than it says, and may be damaged.
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

    /// What had to be left out so far because it is damaged.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// How many bytes of the recordings are done.
    pub fn bytes_done(&self) -> u64 {
        self.bytes_done
    }

    pub(crate) fn visit(
        mut self,
        progress: &mut dyn FnMut(u64),
        event: &mut dyn FnMut(TimedEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Missing, ReadError> {
        let mut told = 0;
        while let Some(next) = self.next_event()? {
            if event(next).is_break() {
                return Ok(self.missing);
            }
            if self.bytes_done != told {
                told = self.bytes_done;
                progress(told);
            }
        }
        progress(self.processes.iter().map(ProcessRecording::bytes).sum());
        Ok(self.missing)
    }

    fn add_streams(&mut self, process: usize, threads: Option<&[u32]>) {
        let mut by_thread = HashMap::new();
        for (number, place) in (0..).zip(&self.processes[process].section().places) {
            if threads.is_some_and(|threads| !threads.contains(&place.thread)) || !self.may_matter(process, place) {
                continue;
            }
            let stream = *by_thread.entry(place.thread).or_insert_with(|| {
                self.streams.push(Stream { process, places: Vec::new(), done: 0, open: None });
                self.streams.len() - 1
            });
            self.streams[stream].places.push(number);
        }
    }

    /// Whether a block reaches into the range.
    fn may_matter(&self, process: usize, place: &Place) -> bool {
        self.range.as_ref().is_none_or(|range| {
            let process = &self.processes[process];
            self.axis.time_ns(process, place.first_ticks) < range.end
                && self.axis.time_ns(process, place.last_ticks) >= range.start
        })
    }

    /// The block that `stream` is at.
    fn place(&self, stream: usize) -> Option<Place> {
        let stream = &self.streams[stream];
        let number = *stream.places.get(stream.done)?;
        self.processes[stream.process].section().places.get(number as usize).copied()
    }

    /// When `stream` goes on, at the earliest if its block is not open yet.
    fn next_time(&self, stream: usize) -> Option<i64> {
        let ticks = match &self.streams[stream].open {
            Some(block) => block.ticks,
            None => self.place(stream).map(|place| place.first_ticks),
        };
        Some(self.axis.time_ns(&self.processes[self.streams[stream].process], ticks?))
    }

    /// Leaves an event of `stream` behind. Gives the stream whose turn it is then, and when that goes on.
    fn step(&mut self, stream: usize) -> Option<(i64, usize)> {
        if let Some(block) = &mut self.streams[stream].open {
            block.step();
            if block.ticks.is_none() {
                self.close(stream);
            }
        }
        self.turn_after(stream)
    }

    /// The stream whose turn it is, and when it goes on: `stream`, which is not in the heap, unless another is earlier.
    fn turn_after(&mut self, stream: usize) -> Option<(i64, usize)> {
        let time = self.next_time(stream);
        let Some(mut first) = self.waiting.peek_mut() else { return Some((time?, stream)) };
        match time {
            None => Some(PeekMut::pop(first).0),
            Some(time) if first.0.0 < time => Some(mem::replace(&mut *first, Reverse((time, stream))).0),
            Some(time) => Some((time, stream)),
        }
    }

    /// Reads the block that `stream` is at, or leaves it behind if it is damaged or empty.
    fn open(&mut self, stream: usize) -> Result<(), ReadError> {
        let Some(place) = self.place(stream) else { return Ok(()) };
        let mut events = self.spare.pop().unwrap_or_default();
        let process = &self.processes[self.streams[stream].process];
        if process.read(&place, &mut self.reader, &mut events)?.is_err() {
            self.missing.damaged.add(place.range());
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

    /// Leaves the block behind that `stream` is at.
    fn close(&mut self, stream: usize) {
        let bytes = self.place(stream).map_or(0, |place| place.range().end - place.range().start);
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
