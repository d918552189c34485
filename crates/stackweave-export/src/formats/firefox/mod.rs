//! The processed profile of the Firefox Profiler: see `docs/decisions/007-firefox-profiles.md`.
//!
//! The format stores columns, so all data of a thread must be known before it can be written: columns are kept in a
//! temporary file. Spans become markers and samples: one sample for each change of the open spans, weighted by time.

mod counter;
mod libs;
mod meta;
mod tables;
mod track;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde_json::{Value, json};
use stackweave_core::EventKind;
use stackweave_profile::{Frame, FrameKind};

use crate::activity::{Details, EventContent, NamedProcess, Span, SpanEnding, ThreadEvent, visit};
use crate::error::ExportError;
use crate::formats::firefox::counter::MemoryCounter;
use crate::formats::firefox::libs::Libs;
use crate::formats::firefox::tables::category;
use crate::formats::firefox::track::{Marker, ThreadColumns, Weights};
use crate::source::Source;
use crate::spilled_columns::Spill;
use stackweave_recording::events::Region;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let processes = NamedProcess::all(source);
    let spill = Spill::new(source.budget());
    let mut writer = FirefoxWriter {
        libs: Libs::of(&processes),
        tracks: BTreeMap::new(),
        threads: HashMap::new(),
        memory: processes.iter().map(|_| MemoryCounter::new(&spill)).collect(),
        last: 0,
        processes: &processes,
        spill,
    };
    visit(source, &mut |event| writer.add(event))?;
    writer.finish(source, out)
}

struct FirefoxWriter<'a> {
    processes: &'a [NamedProcess<'a>],
    libs: Libs,
    spill: Spill,
    /// By process, thread and weights: spans and samples have different weights, so they are separate threads in the
    /// format.
    tracks: BTreeMap<(usize, u32, Weights), ThreadColumns>,
    threads: HashMap<(usize, u32), OpenStacks>,
    memory: Vec<MemoryCounter>,
    /// The time of the last event.
    last: u64,
}

/// The open spans of a thread.
#[derive(Debug, Default)]
struct OpenStacks {
    /// The stacks of the open spans.
    open: Vec<Option<usize>>,
    /// The time at which the innermost span began to run.
    since: u64,
}

impl FirefoxWriter<'_> {
    fn add(&mut self, event: &ThreadEvent<'_>) -> Result<(), ExportError> {
        let ThreadEvent { process, thread, time, .. } = *event;
        let key = (process, thread);
        self.last = self.last.max(time);
        match &event.content {
            EventContent::Begin(span) => Ok(self.begin(key, span)?),
            EventContent::End(span, ending) => Ok(self.end(event, span, *ending)?),
            EventContent::Instant { frame, stack, details } => {
                let stack = self.stack(key, Weights::Time, *stack);
                let data = data("instant", details, stack, SpanEnding::Ended);
                Ok(self.instant(key, *frame, time, data)?)
            }
            EventContent::Counter { frame, value } => {
                Ok(self.instant(key, *frame, time, json!({ "type": "counter", "value": value }))?)
            }
            EventContent::Sample { stack, weight, .. } => {
                let seen = if *stack == 0 {
                    self.path(key, Weights::Samples, event.around)
                } else {
                    self.stack(key, Weights::Samples, *stack)
                };
                Ok(self.track(key, Weights::Samples).sample(time, seen, *weight)?)
            }
            // The format has one memory, which is the heap of the process.
            EventContent::Allocate { memory, .. } if is_own(memory.region) => {
                let stack = if memory.stack == 0 {
                    self.path(key, Weights::Time, event.around)
                } else {
                    self.stack(key, Weights::Time, memory.stack)
                };
                let changes = self.memory[process].allocate(time, memory)?;
                Ok(self.allocations(key, time, stack, &changes)?)
            }
            EventContent::Free { memory, .. } if is_own(memory.region) => {
                let changes = self.memory[process].free(time, thread, memory)?;
                Ok(self.allocations(key, time, None, &changes)?)
            }
            EventContent::Keep { address } => {
                let changes = self.memory[process].keep(time, thread, *address)?;
                Ok(self.allocations(key, time, None, &changes)?)
            }
            EventContent::Tag { frame } if *frame != 0 => {
                Ok(self.instant(key, *frame, time, json!({ "type": "instant" }))?)
            }
            EventContent::Allocate { .. }
            | EventContent::Free { .. }
            | EventContent::Tag { .. }
            | EventContent::Usage { .. } => Ok(()),
        }
    }

    /// Adds changes of memory at a time. Allocations have the stack.
    fn allocations(
        &mut self,
        key: (usize, u32),
        time: u64,
        stack: Option<usize>,
        changes: &[(u64, i64)],
    ) -> io::Result<()> {
        let track = self.track(key, Weights::Time);
        changes.iter().try_for_each(|change| track.allocation(time, stack.filter(|_| change.1 >= 0), *change))
    }

    fn track(&mut self, key: (usize, u32), weights: Weights) -> &mut ThreadColumns {
        self.track_and_libs(key, weights).0
    }

    fn track_and_libs(&mut self, (process, thread): (usize, u32), weights: Weights) -> (&mut ThreadColumns, &Libs) {
        let Self { processes, spill, libs, tracks, .. } = self;
        let tid = || processes[process].thread(thread).map_or(0, |thread| thread.tid);
        let track =
            tracks.entry((process, thread, weights)).or_insert_with(|| ThreadColumns::new(weights, tid(), spill));
        (track, libs)
    }

    /// Returns a stack of the recording, on the thread with these weights.
    fn stack(&mut self, key: (usize, u32), weights: Weights, stack: u32) -> Option<usize> {
        let process = &self.processes[key.0];
        let (track, libs) = self.track_and_libs(key, weights);
        track.tables.stack(process, stack, libs)
    }

    /// Returns the stack of nested spans.
    fn path(&mut self, key: (usize, u32), weights: Weights, spans: &[Span]) -> Option<usize> {
        let process = &self.processes[key.0];
        let (track, libs) = self.track_and_libs(key, weights);
        spans.iter().fold(None, |callers, span| {
            let frames = track.tables.frames(process, span.frame, libs);
            track.tables.push(callers, frames)
        })
    }

    /// Adds the sample for the spans that were open until now.
    fn change(&mut self, key: (usize, u32), time: u64) -> io::Result<()> {
        let thread = self.threads.entry(key).or_default();
        let (stack, since) = (thread.open.last().copied().flatten(), thread.since);
        thread.since = time;
        if stack.is_some() && time > since {
            let weight = i64::try_from(time - since).unwrap_or(i64::MAX);
            self.track(key, Weights::Time).sample(since, stack, weight)?;
        }
        Ok(())
    }

    fn begin(&mut self, key: (usize, u32), span: &Span) -> io::Result<()> {
        self.change(key, span.began)?;
        let callers = self.threads.get(&key).and_then(|thread| thread.open.last().copied().flatten());
        let process = &self.processes[key.0];
        let (track, libs) = self.track_and_libs(key, Weights::Time);
        let frames = track.tables.frames(process, span.frame, libs);
        let stack = track.tables.push(callers, frames);
        self.threads.entry(key).or_default().open.push(stack);
        Ok(())
    }

    fn end(&mut self, event: &ThreadEvent<'_>, span: &Span, ending: SpanEnding) -> io::Result<()> {
        let key = (event.process, event.thread);
        self.change(key, event.time)?;
        let is_idle = self.threads.get_mut(&key).is_none_or(|thread| {
            thread.open.pop();
            thread.open.is_empty()
        });
        let stack = self.stack(key, Weights::Time, span.stack);
        let processes = self.processes;
        let mut annotations = span.all_details();
        if let Some(line) = processes[key.0].line_of(span.caller) {
            annotations = annotations.with_text("called from", &line);
        }
        for (index, frame) in processes[key.0].chain(span.frame).enumerate() {
            let details = if index == 0 { &annotations } else { &Details::default() };
            let data = data("span", details, stack, ending);
            let track = self.track(key, Weights::Time);
            let (name, category) = name(track, Some(frame));
            track.marker(&Marker { name, category, start: span.began, end: Some(event.time), data })?;
        }
        // Otherwise the last sample would extend to the next one.
        if is_idle { self.track(key, Weights::Time).sample(event.time, None, 0) } else { Ok(()) }
    }

    fn instant(&mut self, key: (usize, u32), frame: u32, time: u64, data: Value) -> io::Result<()> {
        let processes = self.processes;
        let track = self.track(key, Weights::Time);
        let (name, category) = name(track, processes[key.0].chain(frame).next_back());
        track.marker(&Marker { name, category, start: time, end: None, data })
    }

    fn finish(mut self, source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
        let samples: u64 = self.tracks.values().map(ThreadColumns::samples).max().unwrap_or(0);
        let meta = meta::meta(source, self.processes, self.last, samples);
        write!(
            out,
            "{{\"meta\":{meta},\n\"libs\":{},\n\"pages\":[],\n\"profilerOverhead\":[],\n\"threads\":[",
            self.libs.values()
        )?;
        let mut first_of: HashMap<usize, usize> = HashMap::new();
        for (index, ((process, number, weights), track)) in self.tracks.iter_mut().enumerate() {
            let is_main = !first_of.contains_key(process);
            first_of.entry(*process).or_insert(index);
            out.write_all(if index == 0 { b"\n{" } else { b",\n{" })?;
            track.write(out, &self.libs)?;
            let about = meta::thread(&self.processes[*process], *number, *weights, is_main);
            // These members follow those of the tables.
            out.write_all(b",\n")?;
            out.write_all(&about.to_string().as_bytes()[1..])?;
        }
        out.write_all(b"\n],\n\"counters\":[")?;
        let mut before = "\n";
        for (process, counter) in self.memory.iter().enumerate() {
            if let Some(main) = first_of.get(&process).filter(|_| counter.is_used()) {
                out.write_all(before.as_bytes())?;
                counter.write(out, self.processes[process].pid, *main)?;
                before = ",\n";
            }
        }
        Ok(out.write_all(b"]}\n")?)
    }
}

fn is_own(region: Region) -> bool {
    region.device() == EventKind::OWN_DEVICE && !matches!(region, Region::Segment(_))
}

/// Returns the name and the category of a marker.
fn name(track: &mut ThreadColumns, frame: Option<&Frame>) -> (usize, usize) {
    let text = frame.map_or(Frame::UNKNOWN, |frame| frame.qualname.as_ref().unwrap_or(&frame.name));
    (track.tables.string(text), category(frame.map_or(FrameKind::Span, |frame| frame.kind)))
}

/// Returns the data of a marker.
fn data(of: &str, details: &Details, stack: Option<usize>, ending: SpanEnding) -> Value {
    let mut data = json!({ "type": of });
    if let Some(text) = details.as_str() {
        data["details"] = text.into();
    }
    if let Some(stack) = stack {
        data["cause"] = json!({ "stack": stack });
    }
    if ending == SpanEnding::Unfinished {
        data["unfinished"] = true.into();
    }
    data
}
