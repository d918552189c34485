//! What each thread did, in tiles: a page reads those that it shows.
//!
//! Every span is stored once, in the level of its duration. What is too short for a level is there too as pieces that are
//! long enough to be seen. Threads are read one after the other, and tiles are written as soon as they are full: memory
//! does not grow with the number of events.

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
use super::blocks::Blocks;
use super::call_lines::CallLines;
use super::frames::RecordedFrames;
use super::head::Threads;
use super::names::Names;
use crate::activity::{Details, Ending, Happening, NamedProcess, Span, What, visit_thread};
use crate::error::ExportError;
use crate::source::Source;

/// Writes the tiles: what the head tells of them, `null` if there is nothing that took time.
pub(super) fn write(
    source: &Source<'_>,
    threads: &Threads<'_>,
    names: &mut Names,
    call_lines: &mut CallLines,
    blocks: &mut Blocks<'_>,
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
            let Some(place) = threads.place(process, thread.number) else { continue };
            let mut track = Track::new(levels);
            visit_thread(source, (process, thread.number), &mut |happening| {
                call_lines.take(happening, threads, &mut timeline.frames);
                timeline.take(&mut track, happening, blocks)
            })?;
            if !track.has_spans() && !timeline.intervals.is_empty() {
                timeline.take_samples(source, (process, thread.number), &mut track, blocks)?;
            }
            timeline.intervals = Intervals::default();
            tracks.extend(track.finish(place, blocks)?);
            call_lines.finish_thread(place, blocks)?;
        }
    }
    if tracks.is_empty() {
        return Ok(Value::Null);
    }
    let counters = timeline.write_counters(blocks)?;
    Ok(json!({"levels": levels.least(), "tracks": tracks, "counters": counters}))
}

struct Timeline<'t, 'n> {
    threads: &'t Threads<'t>,
    frames: RecordedFrames<'n>,
    duration: u64,
    /// Those of the samples of the thread that is read.
    intervals: Intervals,
    /// By process and frame.
    counters: BTreeMap<(usize, u32), Counter>,
}

impl Timeline<'_, '_> {
    fn take(&mut self, track: &mut Track, told: &Happening<'_>, blocks: &mut Blocks<'_>) -> Result<(), ExportError> {
        match &told.what {
            What::End(span, ending) => {
                let frame = self.frames.innermost(self.threads, told.process, span.frame);
                let row = TimelineSpan {
                    began: span.began,
                    duration: told.time.saturating_sub(span.began),
                    depth: u32::try_from(told.around.len()).unwrap_or(u32::MAX),
                    frame,
                    flags: flags(span, *ending),
                };
                track.add(row, &span.all_details(), blocks)
            }
            What::Instant { frame, .. } => {
                let frame = self.frames.innermost(self.threads, told.process, *frame);
                track.lives_at(told.time);
                track.instants.add(told.time, frame);
                Ok(())
            }
            What::Counter { frame, value } => {
                let new = || Counter::new(self.duration);
                self.counters.entry((told.process, *frame)).or_insert_with(new).add(told.time, *value);
                Ok(())
            }
            What::Sample { .. } => {
                self.intervals.add(told.time);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads a thread again that has samples and no spans.
    fn take_samples(
        &mut self,
        source: &Source<'_>,
        (process, thread): (usize, u32),
        track: &mut Track,
        blocks: &mut Blocks<'_>,
    ) -> Result<(), ExportError> {
        let dictionary = source.processes()[process].dictionary();
        let mut sampled = SampledStack::new(self.intervals.median());
        let (mut innermost_first, mut frames, mut over) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |over: &mut Vec<TimelineSpan>| {
            over.drain(..).try_for_each(|span| track.add(span, &Details::default(), blocks))
        };
        visit_thread(source, (process, thread), &mut |told| {
            let What::Sample { stack, .. } = &told.what else { return Ok(()) };
            innermost_first.clear();
            innermost_first.extend(dictionary.frames_of(*stack));
            frames.clear();
            for number in innermost_first.iter().rev() {
                frames.extend_from_slice(self.frames.chain(self.threads, process, *number));
            }
            for frame in &mut frames {
                *frame = self.frames.without_line(*frame);
            }
            sampled.sample(told.time, &frames, &mut over);
            add(&mut over)
        })?;
        sampled.finish(&mut over);
        add(&mut over)
    }

    fn write_counters(self, blocks: &mut Blocks<'_>) -> Result<Vec<Value>, ExportError> {
        let mut told = Vec::new();
        for ((process, frame), counter) in self.counters {
            let (times, values): (Vec<u64>, Vec<f64>) = counter.into_points().into_iter().unzip();
            let block = blocks.json(&json!({"times": times, "values": values}))?;
            told.push(
                json!({"name": name(&self.threads.processes[process], frame), "process": process, "block": block}),
            );
        }
        Ok(told)
    }
}

fn flags(span: &Span, ending: Ending) -> u8 {
    [
        (ending == Ending::Unfinished, TimelineSpan::HAS_NO_END),
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
