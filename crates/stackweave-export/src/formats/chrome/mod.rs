//! Chrome's trace events as JSON: the object format, with a table of stacks after the events.
//!
//! A span is one event, written when it ends. Viewers sort by time and then keep the order of the file. A span that
//! began at the same time as the span around it is therefore written after that one.

mod line;
mod names;
mod stacks;

use std::collections::LinkedList;
use std::io::Write;

use crate::activity::{EventContent, NamedProcess, Span, SpanEnding, ThreadEvent, visit};
use crate::error::ExportError;
use crate::formats::chrome::line::{EventLine, write_string};
use crate::formats::chrome::names::EventNames;
use crate::formats::chrome::stacks::UsedStacks;
use crate::memory_curve::{MemoryCurves, MemoryPoint};
use crate::source::Source;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let processes = NamedProcess::all(source);
    let mut writer = ChromeWriter {
        curves: processes.iter().map(|process| MemoryCurves::of(process.recording)).collect(),
        names: processes.iter().map(|_| EventNames::default()).collect(),
        stacks: processes.iter().map(|_| UsedStacks::default()).collect(),
        delayed: Vec::new(),
        text: Vec::new(),
        is_first: true,
        processes: &processes,
        out,
    };
    writer.begin()?;
    visit(source, &mut |event| writer.add(event))?;
    writer.finish(source)
}

struct ChromeWriter<'a, 'o> {
    processes: &'a [NamedProcess<'a>],
    names: Vec<EventNames>,
    stacks: Vec<UsedStacks>,
    curves: Vec<MemoryCurves>,
    /// Ended spans that began together with an open one: their events, for each open span of each thread.
    delayed: Vec<DelayedEvents>,
    text: Vec<u8>,
    is_first: bool,
    out: &'o mut dyn Write,
}

/// Events inside the open span at this depth of a thread.
struct DelayedEvents {
    process: usize,
    thread: u32,
    depth: usize,
    texts: NestedEvents,
}

/// Events, those of outer spans first. A list can put a span before all events inside it without copying them.
type NestedEvents = LinkedList<Vec<u8>>;

const FLUSH_AT: usize = 1 << 16;

impl ChromeWriter<'_, '_> {
    fn begin(&mut self) -> Result<(), ExportError> {
        self.text.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        let processes = self.processes;
        let mut order: Vec<usize> = (0..processes.len()).collect();
        order.sort_by_key(|process_index| processes[*process_index].began);
        for (index, process_index) in order.into_iter().enumerate() {
            let process = &processes[process_index];
            self.metadata(process.pid, 0, ("process_name", "name"), &process.title)?;
            if !process.labels.is_empty() {
                self.metadata(process.pid, 0, ("process_labels", "labels"), &process.labels)?;
            }
            self.sort_index(process.pid, 0, "process_sort_index", index)?;
            for (index, thread) in process.threads.iter().enumerate() {
                let name = if thread.name.is_empty() { format!("thread {}", thread.tid) } else { thread.name.clone() };
                self.metadata(process.pid, thread.tid, ("thread_name", "name"), &name)?;
                self.sort_index(process.pid, thread.tid, "thread_sort_index", index)?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, pid: u32, tid: u32, (name, key): (&str, &str), value: &str) -> Result<(), ExportError> {
        let mut line = EventLine::new(b'M', pid, tid);
        line.text("name", name).open_args(key);
        write_string(line.value(), value);
        line.close_args();
        self.put(&line.finish())
    }

    fn sort_index(&mut self, pid: u32, tid: u32, name: &str, index: usize) -> Result<(), ExportError> {
        let mut line = EventLine::new(b'M', pid, tid);
        line.text("name", name).open_args("sort_index");
        line.value().extend_from_slice(index.to_string().as_bytes());
        line.close_args();
        self.put(&line.finish())
    }

    fn add(&mut self, event: &ThreadEvent<'_>) -> Result<(), ExportError> {
        let ThreadEvent { process, time, .. } = *event;
        match &event.content {
            EventContent::End(span, ending) => self.span(event, span, *ending),
            EventContent::Instant { frame, stack, details } => {
                let mut line = self.line(b'i', event);
                let name = self.names[process].last(&self.processes[process], *frame);
                line.time("ts", time).raw("name", &name.text).raw("cat", &name.category).text("s", "t");
                self.stacks[process].refer(&mut line, process, *stack);
                line.args(&[&name.args], details, false);
                self.put(&line.finish())
            }
            EventContent::Counter { frame, value } if value.is_finite() => {
                let name = self.names[process].last(&self.processes[process], *frame);
                let mut line = EventLine::new(b'C', self.processes[process].pid, 0);
                line.time("ts", time).raw("name", &name.text).raw("cat", b"\"counter\"").open_args("value");
                line.value().extend_from_slice(format!("{value:?}").as_bytes());
                line.close_args();
                self.put(&line.finish())
            }
            EventContent::Sample { stack, weight, details } => {
                let mut line = self.line(b'i', event);
                line.time("ts", time).text("name", "sample").text("cat", "sample").text("s", "t");
                self.stacks[process].refer(&mut line, process, *stack);
                line.args(&[format!("\"weight\":{weight}").as_bytes()], details, false);
                self.put(&line.finish())
            }
            EventContent::Allocate { .. } | EventContent::Free { .. } | EventContent::Keep { .. } => {
                let points = self.curves[process].add(event);
                points.into_iter().flatten().try_for_each(|point| self.memory(process, point))
            }
            EventContent::Tag { frame } if *frame != 0 => {
                let mut line = self.line(b'i', event);
                let name = self.names[process].last(&self.processes[process], *frame);
                line.time("ts", time).raw("name", &name.text).text("cat", "memory tag").text("s", "t");
                self.put(&line.finish())
            }
            // JSON has no numbers for infinity and NaN.
            EventContent::Begin(_)
            | EventContent::Counter { .. }
            | EventContent::Tag { .. }
            | EventContent::Usage { .. } => Ok(()),
        }
    }

    fn line(&self, phase: u8, event: &ThreadEvent<'_>) -> EventLine {
        let process = &self.processes[event.process];
        EventLine::new(phase, process.pid, process.thread(event.thread).map_or(0, |thread| thread.tid))
    }

    /// Writes the events of a span: one for each function of its frame, the outermost first.
    fn span(&mut self, event: &ThreadEvent<'_>, span: &Span, ending: SpanEnding) -> Result<(), ExportError> {
        let ThreadEvent { process, thread, time, around, .. } = *event;
        let blank = self.line(b'X', event);
        let mut text = Vec::new();
        let (details, caller) = (span.all_details(), self.names[process].caller(&self.processes[process], span.caller));
        for name in &*self.names[process].functions(&self.processes[process], span.frame) {
            let mut line = blank.clone();
            line.time("ts", span.began).time("dur", time - span.began);
            line.raw("name", &name.text).raw("cat", &name.category);
            self.stacks[process].refer(&mut line, process, span.stack);
            if let Some(object) = span.object.filter(|_| text.is_empty()) {
                line.flow(object.flow, object.is_first);
            }
            line.args(&[&name.args, &caller], &details, ending == SpanEnding::Unfinished);
            text.extend_from_slice(if text.is_empty() { b"" } else { b",\n" });
            text.extend_from_slice(&line.finish());
        }
        let depth = around.len();
        let mut texts = self.take_delayed(process, thread, depth + 1);
        texts.push_front(text);
        if around.last().is_some_and(|outside| outside.began == span.began) {
            self.delay(process, thread, depth, texts);
            return Ok(());
        }
        texts.iter().try_for_each(|text| self.put(text))
    }

    fn delay(&mut self, process: usize, thread: u32, depth: usize, mut texts: NestedEvents) {
        let is_it =
            |delayed: &&mut DelayedEvents| (delayed.process, delayed.thread, delayed.depth) == (process, thread, depth);
        match self.delayed.iter_mut().find(is_it) {
            Some(waiting) => waiting.texts.append(&mut texts),
            None => self.delayed.push(DelayedEvents { process, thread, depth, texts }),
        }
    }

    fn take_delayed(&mut self, process: usize, thread: u32, depth: usize) -> NestedEvents {
        let is_it =
            |delayed: &DelayedEvents| (delayed.process, delayed.thread, delayed.depth) == (process, thread, depth);
        let index = self.delayed.iter().position(is_it);
        index.map(|index| self.delayed.swap_remove(index).texts).unwrap_or_default()
    }

    fn memory(&mut self, process: usize, point: MemoryPoint) -> Result<(), ExportError> {
        for (of, value) in [("bytes", point.bytes), ("blocks", point.blocks)] {
            let mut line = EventLine::new(b'C', self.processes[process].pid, 0);
            line.time("ts", point.time).text("name", &point.track(of)).text("cat", "memory").open_args(of);
            line.value().extend_from_slice(value.to_string().as_bytes());
            line.close_args();
            self.put(&line.finish())?;
        }
        Ok(())
    }

    /// Writes an event, or several with separators.
    fn put(&mut self, event: &[u8]) -> Result<(), ExportError> {
        self.text.extend_from_slice(if self.is_first { b"\n" } else { b",\n" });
        self.is_first = false;
        self.text.extend_from_slice(event);
        if self.text.len() >= FLUSH_AT {
            self.out.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }

    fn finish(mut self, source: &Source<'_>) -> Result<(), ExportError> {
        for process in 0..self.processes.len() {
            for point in self.curves[process].rest() {
                self.memory(process, point)?;
            }
        }
        self.out.write_all(&self.text)?;
        self.out.write_all(b"\n],\n\"stackFrames\":{")?;
        let mut is_first = true;
        for (index, (process, used)) in self.processes.iter().zip(&self.stacks).enumerate() {
            used.write(self.out, (index, process), &mut is_first)?;
        }
        self.out.write_all(b"},\n\"otherData\":")?;
        let about = other_data(source, self.processes, &self.curves);
        self.out.write_all(about.to_string().as_bytes())?;
        Ok(self.out.write_all(b"}\n")?)
    }
}

/// Describes the export, and what is not in it.
fn other_data(source: &Source<'_>, processes: &[NamedProcess<'_>], curves: &[MemoryCurves]) -> serde_json::Value {
    let mut about = serde_json::json!({ "title": source.title(), "writer": "stackweave" });
    let first = processes.iter().min_by_key(|process| process.began);
    if let Some(first) = first {
        about["time_0_unix_ns"] = first.recording.timeline().wall_ns(0).to_string().into();
    }
    for (process, curve) in processes.iter().zip(curves).filter(|(_, curve)| curve.bucket_ns > 0) {
        let note = format!("the highest and the last value of each {} ns", curve.bucket_ns);
        about[format!("allocated bytes of process {}", process.pid)] = note.into();
    }
    about
}
