//! JSON lines: one object for each event with a stack, in the order of time.
//!
//! `stack` is the stack that was recorded with the event, or else the open spans of its thread. Stacks and frames are
//! defined once, by lines of their own, so the size of the file is linear in the number of events. `name` is the name
//! of the span or event. Values have the names of the kind's fields. Memory events have a line even without a stack.

mod definitions;
mod thread;

use std::io::{self, Write};
use std::ops::Range;

use serde_json::Value;
use stackweave_core::{EventKind, FieldType, Role};
use stackweave_profile::{Frame, RecordedNames, WordMap};
use stackweave_recording::events::{Decoder, Ending, Event};
use stackweave_recording::file::{NumberMap, RawEvent, number_of};
use stackweave_recording::{ProcessRecording, TimedEvent};

use self::definitions::{Definitions, write_stack_number};
use self::thread::{OpenFrame, StackContext, ThreadReader};
use crate::error::ExportError;
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

/// The first line. The version changes when older readers would misread the file.
const HEAD: &[u8] = b"{\"define\":\"file\",\"format\":\"stackweave-events\",\"version\":2}\n";

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut processes: Vec<JsonProcess<'_>> =
        source.processes().iter().map(|process| JsonProcess::new(source, process)).collect();
    let range = source.options().part.range.clone().unwrap_or(0..u64::MAX);
    out.write_all(HEAD)?;
    let mut lines = JsonLines { definitions: Definitions::default(), line: Vec::new(), out };
    source.visit_events_from_start(&mut |timed| {
        Ok(processes[source.index_of(timed.process)].event(&timed, &range, &mut lines)?)
    })
}

/// The file, and the current line. Definitions that it refers to are written before it.
struct JsonLines<'o> {
    definitions: Definitions,
    line: Vec<u8>,
    out: &'o mut dyn Write,
}

/// A process, with the open spans of its threads.
struct JsonProcess<'a> {
    recording: &'a ProcessRecording,
    decoder: Decoder,
    names: RecordedNames,
    visible: VisibleFrames,
    /// By a frame of the recording and its visible functions: the numbers of these, outermost first.
    frames: WordMap<(u32, u64), Box<[u32]>>,
    /// By the number of a stack in the recording.
    stacks: NumberMap<StackContext>,
    threads: WordMap<u32, ThreadReader>,
    /// By the addresses of objects: the labels that name them.
    tasks: WordMap<u64, u32>,
}

impl<'a> JsonProcess<'a> {
    fn new(source: &Source<'_>, process: &'a ProcessRecording) -> Self {
        let frames: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
        Self {
            recording: process,
            decoder: Decoder::of(process.dictionary()),
            names: source.names(process, &frames),
            visible: VisibleFrames::new(process, source.view()),
            frames: WordMap::default(),
            stacks: NumberMap::default(),
            threads: WordMap::default(),
            tasks: WordMap::default(),
        }
    }

    fn event(&mut self, timed: &TimedEvent<'_>, range: &Range<u64>, lines: &mut JsonLines<'_>) -> io::Result<()> {
        let recording = self.recording;
        let Some(kind) = recording.dictionary().kind(timed.event.kind) else { return Ok(()) };
        let new_thread = || ThreadReader { losses: recording.loss_ticks(timed.thread), ..ThreadReader::default() };
        let thread = self.threads.entry(timed.thread).or_insert_with(new_thread);
        let event = self.decoder.decode(&timed.event);
        let has_begun = if let Event::Open(open) = &event {
            thread.open(timed.event.ticks, open)
        } else {
            thread.end_unrepeated(timed.event.ticks);
            matches!(event, Event::Begin(_))
        };
        let is_written = match &event {
            Event::Instant(_)
            | Event::Sample(_)
            | Event::Allocate(_)
            | Event::Free(_)
            | Event::Complete(_)
            | Event::Keep { .. }
            | Event::Tag { .. }
            | Event::Usage(_) => true,
            Event::End(end) => {
                let says_something = !kind.fields.is_empty() || end.ending == Ending::LeftOpen;
                says_something && !thread.open.is_empty()
            }
            _ => has_begun,
        };
        if let Event::Tag { frame } = event {
            thread.tag = frame;
        }
        let is_inside = u64::try_from(timed.time_ns).is_ok_and(|time| range.contains(&time));
        if is_inside && is_written {
            self.write(timed, kind, lines)?;
        }
        self.update_open_spans(timed.thread, &event, has_begun, &mut lines.definitions);
        self.name_object(&event);
        Ok(())
    }

    /// Updates the open spans of the thread.
    fn update_open_spans(&mut self, thread: u32, event: &Event<'_>, has_begun: bool, definitions: &mut Definitions) {
        let around = self.threads.entry(thread).or_default().context();
        let mut opened = |frame: u32| OpenFrame { frame, inside: self.stack_inside(around, frame, definitions) };
        match event {
            Event::Open(open) if has_begun => {
                let opened = opened(open.frame);
                self.threads.entry(thread).or_default().open.begin_open(open.depth, opened);
            }
            Event::Begin(begin) => {
                let opened = opened(begin.frame);
                self.threads.entry(thread).or_default().open.begin(opened);
            }
            Event::End(_) => drop(self.threads.entry(thread).or_default().open.end()),
            _ => {}
        }
    }

    /// Records the name of an object, which it keeps until another one begins at its address.
    fn name_object(&mut self, event: &Event<'_>) {
        match event {
            Event::Begin(begin) if !begin.is_resumed && begin.object != 0 => drop(self.tasks.remove(&begin.object)),
            Event::Name(name) if name.object != 0 => drop(self.tasks.insert(name.object, name.frame)),
            _ => {}
        }
    }

    fn write(&mut self, timed: &TimedEvent<'_>, kind: &EventKind, lines: &mut JsonLines<'_>) -> io::Result<()> {
        lines.line.clear();
        let (pid, line) = (self.recording.start().pid, &mut lines.line);
        write!(line, "{{\"time_ns\":{},\"process\":{pid}", timed.time_ns)?;
        let thread = self.recording.dictionary().thread(timed.thread);
        write!(line, ",\"thread\":{}", thread.map_or(timed.thread, |thread| thread.tid))?;
        if let Some(thread) = thread.filter(|thread| !thread.name.is_empty()) {
            line.write_all(b",\"thread_name\":")?;
            write_text(line, &thread.name)?;
        }
        line.write_all(b",\"kind\":")?;
        write_text(line, &kind.name)?;
        self.write_values(timed, kind, lines)?;
        let context = self.context(timed, &mut lines.definitions);
        lines.definitions.define_stack(context.stack, lines.out)?;
        lines.line.write_all(b",\"stack\":")?;
        write_stack_number(context.stack, &mut lines.line)?;
        lines.line.write_all(b"}\n")?;
        lines.out.write_all(&lines.line)
    }

    /// Writes all values but the stack. The first frame is the name of the event; the caller is written with its
    /// location.
    fn write_values(&mut self, timed: &TimedEvent<'_>, kind: &EventKind, lines: &mut JsonLines<'_>) -> io::Result<()> {
        let event = &timed.event;
        let tag = self.threads.get(&timed.thread).map_or(0, |thread| thread.tag);
        let first_frame = kind.position_of(FieldType::Frame);
        for (index, (field, &word)) in kind.fields.iter().zip(event.words).enumerate() {
            let is_frame = field.field_type == FieldType::Frame;
            if is_frame && matches!(kind.role, Role::Tag | Role::Usage) {
                self.write_label(&field.name, word, &mut lines.line)?;
                continue;
            }
            if is_frame && Some(index) != first_frame {
                self.write_caller(&field.name, word, lines)?;
                continue;
            }
            let key = if is_frame { "name" } else { &field.name };
            if field.field_type == FieldType::Stack {
                continue;
            }
            let out = &mut lines.line;
            out.write_all(b",")?;
            write_text(out, key)?;
            out.write_all(b":")?;
            match field.field_type {
                FieldType::Frame => {
                    let name = self.names.of(number_of(word)).first();
                    write_text(
                        out,
                        name.map_or(Frame::UNKNOWN, |frame| frame.qualname.as_ref().unwrap_or(&frame.name)),
                    )?;
                }
                FieldType::Signed => write!(out, "{}", word.cast_signed())?,
                FieldType::Float => write_value(out, &f64::from_bits(word).into())?,
                FieldType::Address => write!(out, "\"{word:#x}\"")?,
                FieldType::Ticks => write!(out, "{}", self.recording.timeline().nanoseconds(word))?,
                FieldType::Unsigned | FieldType::Stack | FieldType::Bytes | FieldType::Call => {
                    write!(out, "{word}")?;
                }
            }
        }
        let out = &mut lines.line;
        if matches!(kind.role, Role::Allocate | Role::Map) && tag != 0 {
            self.write_label("tag", tag.into(), out)?;
        }
        let task = self.resumed_object(event).and_then(|object| self.tasks.get(&object));
        if let Some(name) = task.and_then(|label| self.names.of(*label).first()) {
            out.write_all(b",\"task\":")?;
            write_text(out, &name.name)?;
        }
        let Some((bytes, field)) = event.bytes.zip(kind.fields.last()) else { return Ok(()) };
        out.write_all(b",")?;
        write_text(out, &field.name)?;
        out.write_all(b":")?;
        match serde_json::from_slice::<Value>(bytes) {
            Ok(_) if !bytes.contains(&b'\n') && !bytes.contains(&b'\r') => out.write_all(bytes),
            Ok(details) => write_value(out, &details),
            Err(_) => write_text(out, &String::from_utf8_lossy(bytes)),
        }
    }

    /// Returns the object of a span that resumes or is open, or that gets a name.
    fn resumed_object(&self, event: &RawEvent<'_>) -> Option<u64> {
        let object = match self.decoder.decode(event) {
            Event::Begin(begin) if begin.is_resumed => begin.object,
            Event::Open(open) => open.object,
            Event::Name(name) => name.object,
            _ => 0,
        };
        Some(object).filter(|object| *object != 0)
    }

    /// Writes the name of a label, or null if there is none.
    fn write_label(&self, key: &str, word: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b",")?;
        write_text(out, if key == "frame" { "name" } else { key })?;
        out.write_all(b":")?;
        match self.names.of(number_of(word)).first() {
            Some(frame) => write_text(out, &frame.name),
            None => out.write_all(b"null"),
        }
    }

    fn write_caller(&mut self, key: &str, word: u64, lines: &mut JsonLines<'_>) -> io::Result<()> {
        let frame = number_of(word);
        // The innermost function counts, even if it is hidden.
        let Some(&number) = self.numbers(frame, 1, &mut lines.definitions).first() else { return Ok(()) };
        lines.definitions.define_frame(number, lines.out)?;
        lines.line.write_all(b",")?;
        write_text(&mut lines.line, key)?;
        write!(lines.line, ":{number}")
    }

    /// Returns the stack of an event.
    fn context(&mut self, timed: &TimedEvent<'_>, definitions: &mut Definitions) -> StackContext {
        let stack = self.decoder.layout(timed.event.kind).map_or(0, |layout| layout.stack().number(timed.event.words));
        match stack {
            0 => self.threads.get(&timed.thread).map(ThreadReader::context).unwrap_or_default(),
            stack => self.recorded_context(stack, definitions),
        }
    }

    /// Returns the stack for a stack of the recording. Each stack is converted once, starting from its known callers.
    fn recorded_context(&mut self, stack: u32, definitions: &mut Definitions) -> StackContext {
        let mut waiting = Vec::new();
        let mut context = StackContext::default();
        let mut next = stack;
        while let Some((callers, frame)) = self.recording.dictionary().stack(next) {
            if let Some(known) = self.stacks.get(next) {
                context = *known;
                break;
            }
            waiting.push((next, frame));
            next = callers;
        }
        while let Some((stack, frame)) = waiting.pop() {
            context = self.stack_inside(context, frame, definitions);
            self.stacks.insert(stack, context);
        }
        context
    }

    /// Returns the stack of a frame inside the callers.
    fn stack_inside(&mut self, callers: StackContext, frame: u32, definitions: &mut Definitions) -> StackContext {
        let mut is_library = callers.is_library;
        let visible_bits = self.visible.visible_bits(frame, self.names.of(frame), &mut is_library);
        self.numbers(frame, visible_bits, definitions);
        let numbers = self.frames.get(&(frame, visible_bits)).into_iter().flatten();
        let stack = numbers.fold(callers.stack, |callers, frame| definitions.stack(callers, *frame));
        StackContext { stack, is_library }
    }

    /// Returns the numbers of the visible functions of a frame of the recording, outermost first.
    fn numbers(&mut self, frame: u32, visible_bits: u64, definitions: &mut Definitions) -> &[u32] {
        let frames = self.names.of(frame);
        self.frames.entry((frame, visible_bits)).or_insert_with(|| {
            let outermost_first = frames.iter().enumerate().filter(|(index, _)| visible_bits >> index & 1 == 1).rev();
            outermost_first.map(|(_, frame)| definitions.frame(&text(frame))).collect()
        })
    }
}

/// Writes a frame as a JSON object.
fn text(frame: &Frame) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing to memory can't fail.
    let _ = frame.write_json(&mut text);
    text
}

fn write_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}

fn write_value(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}
