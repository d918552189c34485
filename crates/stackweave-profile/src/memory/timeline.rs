//! The memory of a process over time.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use stackweave_core::{EventKind, Role};
use stackweave_recording::events::{Decoder, Event};
use stackweave_recording::{ProcessRecording, ReadError};

use super::labels::frame_name;
use super::replay::Replay;
use super::snapshot::recorder_threads;

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
    let noted = read_counters(process, range.clone())?;
    if !noted.points.is_empty() {
        progress(process.bytes());
        return Ok(noted);
    }
    replay(process, range, progress)
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

/// Reads the points that the recorder has counted.
fn read_counters(process: &ProcessRecording, range: Option<Range<u64>>) -> Result<MemoryTimeline, ReadError> {
    let decoder = Decoder::of(process.dictionary());
    let threads = recorder_threads(process);
    let mut noted = MemoryTimeline::default();
    if !decoder.has_role(Role::Counter) || threads.is_empty() {
        return Ok(noted);
    }
    let mut known: HashMap<u32, Option<bool>> = HashMap::new();
    let range = range.unwrap_or(0..u64::MAX);
    let mut order = process.in_time_order(Some(0..range.end), Some(&threads));
    while let Some(timed) = order.next_event()? {
        let Event::Counter(counter) = decoder.decode(&timed.event) else { continue };
        let name = || match frame_name(process.dictionary(), counter.frame) {
            Some(HEAP) => Some(true),
            Some(RSS) => Some(false),
            _ => None,
        };
        let Some(is_heap) = *known.entry(counter.frame).or_insert_with(name) else { continue };
        // The last value before the range is the value at its start.
        noted.set(u64::try_from(timed.time_ns).unwrap_or(0).max(range.start), is_heap, counter.unsigned());
    }
    Ok(noted)
}

impl MemoryTimeline {
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
    let mut timeline = MemoryTimeline::default();
    let Some(whole) = process.time_range().filter(|_| Decoder::of(process.dictionary()).has_memory()) else {
        return Ok(timeline);
    };
    let range = range.map_or(whole.clone(), |range| range.start.max(whole.start)..range.end.min(whole.end));
    let part = (range.end.saturating_sub(range.start) / PARTS).max(1);
    let mut replay = Replay::new(process, None);
    let mut open: Option<(u64, TimelinePoint)> = None;
    process.visit_in_time_order(Some(0..range.end), progress, &mut |timed| {
        let Some(event) = replay.decode(&timed.event) else { return ControlFlow::Continue(()) };
        replay.add(timed.event.ticks, timed.thread, &event);
        let time_ns = u64::try_from(timed.time_ns).unwrap_or(0);
        let time_ns = time_ns.max(range.start);
        let point = TimelinePoint { time_ns, heap: Some(replay.live_bytes(EventKind::OWN_DEVICE)), rss: None };
        match &mut open {
            Some((_, before)) if time_ns == range.start => *before = point,
            Some((number, highest)) if *number == time_ns / part => {
                *highest = if highest.heap < point.heap { point } else { *highest };
            }
            _ => timeline.points.extend(open.replace((time_ns / part, point)).map(|(_, point)| point)),
        }
        ControlFlow::Continue(())
    })?;
    timeline.points.extend(open.map(|(_, point)| point));
    let last = TimelinePoint {
        time_ns: range.end.saturating_sub(1),
        heap: Some(replay.live_bytes(EventKind::OWN_DEVICE)),
        rss: None,
    };
    if timeline.points.last().is_some_and(|point| point.time_ns < last.time_ns) {
        timeline.points.push(last);
    }
    Ok(timeline)
}
