//! The memory of a process over time.

use std::ops::{ControlFlow, Range};

use stackweave_core::EventKind;
use stackweave_recording::events::{Counter, Decoder};
use stackweave_recording::file::Dictionary;
use stackweave_recording::{ProcessRecording, ReadError};

use super::labels::frame_name;
use super::recorder_thread::RecorderThread;
use super::replay::Replay;
use crate::word_hash::WordMap;

/// The counter of live bytes.
const HEAP: &str = "memory.heap";
/// The counter of resident bytes, according to the system.
const RSS: &str = "memory.rss";

/// The memory at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelinePoint {
    /// The time, in nanoseconds since the process began to record.
    pub time_ns: u64,
    /// The live bytes, if they are known.
    pub heap: Option<u64>,
    /// The resident bytes, if they are known.
    pub rss: Option<u64>,
}

/// The memory of a process over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryTimeline {
    /// The points in the order of time. A value lasts until the next one.
    pub points: Vec<TimelinePoint>,
}

/// Returns the memory of a process over time: from its recorder's counters, or else from its allocations and frees,
/// with the highest value of each of some thousand intervals. `range` is in nanoseconds since it began to record.
pub fn read_timeline(
    process: &ProcessRecording,
    range: Option<Range<u64>>,
    progress: &mut dyn FnMut(u64),
) -> Result<MemoryTimeline, ReadError> {
    timeline_with(process, &RecorderThread::read_counters(process)?, range, progress)
}

/// Returns the same with what the recorder has written.
pub(super) fn timeline_with(
    process: &ProcessRecording,
    recorder: &RecorderThread,
    range: Option<Range<u64>>,
    progress: &mut dyn FnMut(u64),
) -> Result<MemoryTimeline, ReadError> {
    match recorder.timeline_of(&range.clone().unwrap_or(0..u64::MAX)) {
        Some(counted) => {
            progress(process.bytes());
            Ok(counted)
        }
        None => replay(process, range, progress),
    }
}

impl MemoryTimeline {
    /// Adds several timelines: each is moved by the start of its process, and counts until its end. Unknown values are
    /// not added.
    pub fn sum(all: &[(Range<u64>, Self)]) -> Self {
        let mut steps: Vec<(u64, usize, TimelinePoint)> = Vec::new();
        let last = all.iter().map(|(life, _)| life.end).max();
        for (number, (life, timeline)) in all.iter().enumerate() {
            let moved = |point: &TimelinePoint| (point.time_ns.saturating_add(life.start), number, *point);
            steps.extend(timeline.points.iter().map(moved));
            let gone = TimelinePoint { time_ns: life.end, heap: None, rss: None };
            steps.extend((Some(life.end) != last).then_some((life.end, number, gone)));
        }
        steps.sort_by_key(|(time, number, _)| (*time, *number));
        let (mut heaps, mut sizes) = (vec![None; all.len()], vec![None; all.len()]);
        let mut points: Vec<TimelinePoint> = Vec::with_capacity(steps.len());
        for (time_ns, number, point) in steps {
            (heaps[number], sizes[number]) = (point.heap, point.rss);
            let sum = |known: &[Option<u64>]| known.iter().copied().flatten().reduce(u64::saturating_add);
            let next = TimelinePoint { time_ns, heap: sum(&heaps), rss: sum(&sizes) };
            match points.last_mut().filter(|last| last.time_ns == time_ns) {
                Some(last) => *last = next,
                None => points.push(next),
            }
        }
        Self { points }
    }

    /// Returns the highest live and resident bytes.
    pub fn highest(&self) -> (Option<u64>, Option<u64>) {
        let highest = |of: fn(&TimelinePoint) -> Option<u64>| self.points.iter().filter_map(of).max();
        (highest(|point| point.heap), highest(|point| point.rss))
    }
}

/// Returns the time from the start of a process, which began to record later than the first one, to its last event.
pub fn lifetime(process: &ProcessRecording, offset: u64) -> Range<u64> {
    offset..process.time_range().map_or(0, |range| range.end).saturating_add(offset)
}

/// The memory over time from the recorder's counters, as they are read.
#[derive(Debug, Default)]
pub(super) struct CounterCurve {
    pub(super) timeline: MemoryTimeline,
    /// Which of the counters each frame names: of the heap, or of the resident bytes.
    names: WordMap<u32, Option<bool>>,
}

impl CounterCurve {
    pub(super) fn add(&mut self, dictionary: &Dictionary, time_ns: u64, counter: &Counter) {
        let name = || match frame_name(dictionary, counter.frame) {
            Some(HEAP) => Some(true),
            Some(RSS) => Some(false),
            _ => None,
        };
        if let Some(is_heap) = *self.names.entry(counter.frame).or_insert_with(name) {
            self.timeline.set(time_ns, is_heap, counter.unsigned());
        }
    }
}

impl MemoryTimeline {
    /// Returns the part in a range. The last value before the range is the value at its start.
    pub(super) fn within(&self, range: Range<u64>) -> Self {
        let end = self.points.partition_point(|point| point.time_ns < range.end);
        let before = self.points.partition_point(|point| point.time_ns <= range.start).min(end);
        let first = self.points[..before].last().map(|point| TimelinePoint { time_ns: range.start, ..*point });
        Self { points: first.into_iter().chain(self.points[before..end].iter().copied()).collect() }
    }

    /// Sets a value at this time; the other one is unchanged.
    fn set(&mut self, time_ns: u64, is_heap: bool, value: u64) {
        let (heap, rss) = self.points.last().map_or((None, None), |last| (last.heap, last.rss));
        let point = if is_heap {
            TimelinePoint { time_ns, heap: Some(value), rss }
        } else {
            TimelinePoint { time_ns, heap, rss: Some(value) }
        };
        match self.points.last_mut().filter(|last| last.time_ns == time_ns) {
            Some(last) => *last = point,
            None => self.points.push(point),
        }
    }
}

/// The number of intervals for points from events.
const PARTS: u64 = 4_000;

fn replay(
    process: &ProcessRecording,
    range: Option<Range<u64>>,
    progress: &mut dyn FnMut(u64),
) -> Result<MemoryTimeline, ReadError> {
    let Some(whole) = process.time_range().filter(|_| Decoder::of(process.dictionary()).has_memory()) else {
        return Ok(MemoryTimeline::default());
    };
    let range = range.map_or(whole.clone(), |range| range.start.max(whole.start)..range.end.min(whole.end));
    let (mut replay, mut curve) = (Replay::new(process, None), ReplayCurve::new(range.clone()));
    process.visit_in_time_order(Some(0..range.end), progress, &mut |timed| {
        if let Some(event) = replay.decode(&timed.event) {
            replay.add(timed.event.ticks, timed.thread, &event);
            curve.add(u64::try_from(timed.time_ns).unwrap_or(0), replay.live_bytes(EventKind::OWN_DEVICE));
        }
        ControlFlow::Continue(())
    })?;
    Ok(curve.finish(replay.live_bytes(EventKind::OWN_DEVICE)))
}

/// The memory over time from a replay: the highest value of each interval.
#[derive(Debug)]
pub(crate) struct ReplayCurve {
    range: Range<u64>,
    part: u64,
    /// The number of the current interval, and its highest point.
    open: Option<(u64, TimelinePoint)>,
    timeline: MemoryTimeline,
}

impl ReplayCurve {
    pub(crate) fn new(range: Range<u64>) -> Self {
        let part = (range.end.saturating_sub(range.start) / PARTS).max(1);
        Self { range, part, open: None, timeline: MemoryTimeline::default() }
    }

    /// Returns the curve of the selected time of a process.
    pub(crate) fn of(process: &ProcessRecording, selected: &Range<u64>) -> Self {
        let whole = process.time_range().unwrap_or_default();
        Self::new(selected.start.max(whole.start)..selected.end.min(whole.end))
    }

    /// Adds the live bytes after an event.
    pub(crate) fn add(&mut self, time_ns: u64, live: u64) {
        let Self { range, part, open, timeline } = self;
        let time_ns = time_ns.max(range.start);
        let point = TimelinePoint { time_ns, heap: Some(live), rss: None };
        match open {
            Some((_, before)) if time_ns == range.start => *before = point,
            Some((number, highest)) if *number == time_ns / *part => {
                *highest = if highest.heap < point.heap { point } else { *highest };
            }
            _ => timeline.points.extend(open.replace((time_ns / *part, point)).map(|(_, point)| point)),
        }
    }

    /// Returns the whole curve; `live` are the live bytes at its end.
    pub(crate) fn finish(self, live: u64) -> MemoryTimeline {
        let Self { range, open, mut timeline, .. } = self;
        timeline.points.extend(open.map(|(_, point)| point));
        let last = TimelinePoint { time_ns: range.end.saturating_sub(1), heap: Some(live), rss: None };
        if timeline.points.last().is_some_and(|point| point.time_ns < last.time_ns) {
            timeline.points.push(last);
        }
        timeline
    }
}
