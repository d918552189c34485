//! The spans of each thread, in tiles: the page decodes only the visible ones.
//!
//! Every span is stored once, in the level of its duration. Spans that are too short for a level are represented there
//! by segments that are long enough to be visible. Tiles are written as soon as they are full: memory grows with the
//! number of threads, and not with that of events.

mod counters;
mod dense;
mod instants;
mod levels;
mod samples;
mod spans;
mod tiles;
mod track;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde_json::{Value, json};
use stackweave_recording::TimedEvent;
use stackweave_recording::events::Event;

use self::counters::CounterPoints;
use self::levels::Levels;
use self::samples::{Intervals, SampledStack};
use self::spans::TimelineSpan;
use self::tiles::TileSizes;
use self::track::Track;
use super::blocks::PageBlocks;
use super::call_lines::CallLines;
use super::frames::RecordedFrames;
use super::head::Threads;
use super::names::Names;
use crate::activity::{
    AllKinds, Details, EventContent, NamedProcess, Span, SpanEnding, ThreadEvent, Visit, all_kinds, visit_thread,
};
use crate::error::ExportError;
use crate::source::Source;

/// The timeline of all threads, which grows as events are added: those of each thread in order.
pub(super) struct Timeline<'t, 'n> {
    threads: &'t Threads<'t>,
    frames: RecordedFrames<'n>,
    kinds: AllKinds,
    sizes: TileSizes,
    duration: u64,
    /// The threads so far.
    all: Vec<TimedThread>,
    /// Their indexes, by process and number; `None` for a thread that is not in the report.
    indexes: HashMap<(usize, u32), Option<usize>>,
    /// The last look-up.
    last: Option<((usize, u32), Option<usize>)>,
    /// By process and frame.
    counters: BTreeMap<(usize, u32), CounterPoints>,
}

/// A thread with its timeline so far.
#[derive(Debug)]
struct TimedThread {
    process: usize,
    number: u32,
    /// Its index in the report.
    index: usize,
    visit: Visit,
    track: Track,
    call_lines: CallLines,
    /// The intervals between its samples.
    intervals: Intervals,
}

/// The entries of the head.
#[derive(Debug, Default)]
pub(super) struct TimelineEntries {
    /// `null` if no thread has a timeline.
    pub(super) timeline: Value,
    pub(super) call_lines: Vec<Value>,
}

impl<'t, 'n> Timeline<'t, 'n> {
    pub(super) fn new(source: &Source<'_>, threads: &'t Threads<'t>, names: &'n mut Names) -> Self {
        let duration = source.time_range().end;
        let (all, indexes, last, counters) = Default::default();
        Self {
            threads,
            frames: RecordedFrames::new(source, names),
            kinds: all_kinds(source),
            sizes: TileSizes { levels: Levels::of(duration), rows: tiles::rows(threads.count()) },
            duration,
            all,
            indexes,
            last,
            counters,
        }
    }

    /// Adds an event of the process with this index.
    pub(super) fn event(
        &mut self,
        source: &Source<'_>,
        process: usize,
        (timed, event): (&TimedEvent<'_>, &Event<'_>),
        blocks: &mut PageBlocks<'_>,
    ) -> Result<(), ExportError> {
        let Some(at) = self.thread(source, process, timed.thread) else { return Ok(()) };
        let mut all = core::mem::take(&mut self.all);
        let thread = &mut all[at];
        let TimedThread { visit, track, call_lines, intervals, .. } = thread;
        let result = visit.event(process, (timed, event), &mut |event| {
            call_lines.add(event, self.threads, &mut self.frames);
            self.add((track, intervals), event, blocks)
        });
        self.all = all;
        result
    }

    fn thread(&mut self, source: &Source<'_>, process: usize, number: u32) -> Option<usize> {
        let key = (process, number);
        if let Some((_, at)) = self.last.filter(|(last, _)| *last == key) {
            return at;
        }
        let Self { threads, kinds, sizes, all, indexes, .. } = self;
        let at = *indexes.entry(key).or_insert_with(|| {
            let index = threads.index(process, number)?;
            let (call_lines, intervals) = Default::default();
            let (visit, track) = (Visit::without_memory(source, Rc::clone(kinds)), Track::new(*sizes));
            all.push(TimedThread { process, number, index, visit, track, call_lines, intervals });
            Some(all.len() - 1)
        });
        self.last = Some((key, at));
        at
    }

    /// Writes what is not written yet, after the last event, and returns the entries of the head.
    pub(super) fn finish(
        mut self,
        source: &Source<'_>,
        blocks: &mut PageBlocks<'_>,
    ) -> Result<TimelineEntries, ExportError> {
        let (mut tracks, mut lines) = (Vec::new(), Vec::new());
        let mut all = core::mem::take(&mut self.all);
        all.sort_by_key(|thread| thread.index);
        for thread in all {
            let TimedThread { process, number, index, visit, mut track, mut call_lines, mut intervals } = thread;
            visit.finish(source, &mut |event| {
                call_lines.add(event, self.threads, &mut self.frames);
                self.add((&mut track, &mut intervals), event, blocks)
            })?;
            if !track.has_spans() && !intervals.is_empty() {
                self.read_samples(source, (process, number), (&mut track, &intervals), blocks)?;
            }
            tracks.extend(track.finish(index, blocks)?);
            lines.extend(call_lines.finish(index, blocks)?);
        }
        if tracks.is_empty() {
            return Ok(TimelineEntries { timeline: Value::Null, call_lines: lines });
        }
        let levels = self.sizes.levels.min_durations();
        let counters = self.write_counters(blocks)?;
        let timeline = json!({"levels": levels, "tracks": tracks, "counters": counters});
        Ok(TimelineEntries { timeline, call_lines: lines })
    }

    fn add(
        &mut self,
        (track, intervals): (&mut Track, &mut Intervals),
        event: &ThreadEvent<'_>,
        blocks: &mut PageBlocks<'_>,
    ) -> Result<(), ExportError> {
        match &event.content {
            EventContent::End(span, ending) => {
                let frame = self.frames.innermost(self.threads, event.process, span.frame);
                let row = TimelineSpan {
                    began: span.began,
                    duration: event.time.saturating_sub(span.began),
                    depth: u32::try_from(event.around.len()).unwrap_or(u32::MAX),
                    frame,
                    flags: flags(span, *ending),
                };
                track.add(row, &span.all_details(), blocks)
            }
            EventContent::Instant { frame, .. } => {
                let frame = self.frames.innermost(self.threads, event.process, *frame);
                track.extend_to(event.time);
                track.instants.add(event.time, frame);
                Ok(())
            }
            EventContent::Counter { frame, value } => {
                let new = || CounterPoints::new(self.duration);
                self.counters.entry((event.process, *frame)).or_insert_with(new).add(event.time, *value);
                Ok(())
            }
            EventContent::Sample { .. } => {
                intervals.add(event.time);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads a thread with samples and without spans again.
    fn read_samples(
        &mut self,
        source: &Source<'_>,
        (process, thread): (usize, u32),
        (track, intervals): (&mut Track, &Intervals),
        blocks: &mut PageBlocks<'_>,
    ) -> Result<(), ExportError> {
        let dictionary = source.processes()[process].dictionary();
        let mut sampled = SampledStack::new(intervals.median());
        let (mut innermost_first, mut frames, mut over) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |over: &mut Vec<TimelineSpan>| {
            over.drain(..).try_for_each(|span| track.add(span, &Details::default(), blocks))
        };
        visit_thread(source, (process, thread), &mut |event| {
            let EventContent::Sample { stack, .. } = &event.content else { return Ok(()) };
            innermost_first.clear();
            innermost_first.extend(dictionary.frames_of(*stack));
            frames.clear();
            for number in innermost_first.iter().rev() {
                frames.extend_from_slice(self.frames.chain(self.threads, process, *number));
            }
            for frame in &mut frames {
                *frame = self.frames.without_line(*frame);
            }
            sampled.sample(event.time, &frames, &mut over);
            add(&mut over)
        })?;
        sampled.finish(&mut over);
        add(&mut over)
    }

    fn write_counters(self, blocks: &mut PageBlocks<'_>) -> Result<Vec<Value>, ExportError> {
        let mut entries = Vec::new();
        for ((process, frame), counter) in self.counters {
            let (times, values): (Vec<u64>, Vec<f64>) = counter.into_points().into_iter().unzip();
            let block = blocks.json(&json!({"times": times, "values": values}))?;
            entries.push(
                json!({"name": name(&self.threads.processes[process], frame), "process": process, "block": block}),
            );
        }
        Ok(entries)
    }
}

fn flags(span: &Span, ending: SpanEnding) -> u8 {
    [
        (ending == SpanEnding::Unfinished, TimelineSpan::HAS_NO_END),
        (span.has_failed(), TimelineSpan::HAS_FAILED),
        (!span.is_call, TimelineSpan::WAS_OPEN),
    ]
    .into_iter()
    .filter_map(|(is_so, flag)| is_so.then_some(flag))
    .sum()
}

fn name(process: &NamedProcess<'_>, frame: u32) -> String {
    process.chain(frame).next_back().map_or_else(|| "counter".to_owned(), |frame| frame.name.to_string())
}
