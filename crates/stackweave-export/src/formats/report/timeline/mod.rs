//! The spans of each thread, in tiles: the page decodes only the visible ones.
//!
//! Every span is stored once, in the level of its duration. Spans that are too short for a level are represented there
//! by segments that are long enough to be visible. Threads are read one after another, and tiles are written as soon as
//! they are full: memory does not grow with the number of events.

mod counters;
mod dense;
mod instants;
mod levels;
mod samples;
mod spans;
mod tiles;
mod track;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::counters::Counter;
use self::levels::Levels;
use self::samples::{Intervals, SampledStack};
use self::spans::TimelineSpan;
use self::track::Track;
use super::blocks::PageBlocks;
use super::call_lines::CallLines;
use super::frames::RecordedFrames;
use super::head::Threads;
use super::names::Names;
use crate::activity::{Details, EventContent, NamedProcess, Span, SpanEnd, ThreadEvent, visit_thread};
use crate::error::ExportError;
use crate::source::Source;

/// Writes the tiles, and returns their head entries; `null` if no thread has a timeline.
pub(super) fn write(
    source: &Source<'_>,
    threads: &Threads<'_>,
    names: &mut Names,
    call_lines: &mut CallLines,
    blocks: &mut PageBlocks<'_>,
) -> Result<Value, ExportError> {
    let duration = source.time_range().end;
    let levels = Levels::of(duration);
    let mut timeline = Timeline {
        threads,
        frames: RecordedFrames::new(source, names),
        duration,
        intervals: Intervals::default(),
        counters: BTreeMap::new(),
    };
    let mut tracks = Vec::new();
    for (process, named) in threads.processes.iter().enumerate() {
        for thread in &named.threads {
            let Some(index) = threads.index(process, thread.number) else { continue };
            let mut track = Track::new(levels);
            visit_thread(source, (process, thread.number), &mut |event| {
                call_lines.add(event, threads, &mut timeline.frames);
                timeline.add(&mut track, event, blocks)
            })?;
            if !track.has_spans() && !timeline.intervals.is_empty() {
                timeline.read_samples(source, (process, thread.number), &mut track, blocks)?;
            }
            timeline.intervals = Intervals::default();
            tracks.extend(track.finish(index, blocks)?);
            call_lines.finish_thread(index, blocks)?;
        }
    }
    if tracks.is_empty() {
        return Ok(Value::Null);
    }
    let counters = timeline.write_counters(blocks)?;
    Ok(json!({"levels": levels.min_durations(), "tracks": tracks, "counters": counters}))
}

struct Timeline<'t, 'n> {
    threads: &'t Threads<'t>,
    frames: RecordedFrames<'n>,
    duration: u64,
    /// The intervals between samples of the current thread.
    intervals: Intervals,
    /// By process and frame.
    counters: BTreeMap<(usize, u32), Counter>,
}

impl Timeline<'_, '_> {
    fn add(
        &mut self,
        track: &mut Track,
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
                let new = || Counter::new(self.duration);
                self.counters.entry((event.process, *frame)).or_insert_with(new).add(event.time, *value);
                Ok(())
            }
            EventContent::Sample { .. } => {
                self.intervals.add(event.time);
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
        track: &mut Track,
        blocks: &mut PageBlocks<'_>,
    ) -> Result<(), ExportError> {
        let dictionary = source.processes()[process].dictionary();
        let mut sampled = SampledStack::new(self.intervals.median());
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

fn flags(span: &Span, ending: SpanEnd) -> u8 {
    [
        (ending == SpanEnd::Unfinished, TimelineSpan::HAS_NO_END),
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
