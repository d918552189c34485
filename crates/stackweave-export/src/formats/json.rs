//! One JSON object for each event that has a place in the program, a line each, the earliest first.
//!
//! `frames` is that place, innermost first, in `PyTorch`'s shape: the stack that was recorded with the event, else what its
//! thread has begun. `name` is what begins or happens there. Values have the names that their kind gives them. What happens to
//! memory is told whether it has a place or not.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;

use serde_json::Value;
use stackweave_core::{EventKind, FieldType, Role};
use stackweave_profile::{Frame, RecordedNames};
use stackweave_recording::file::Event;
use stackweave_recording::read::OpenStack;
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::losses;
use crate::error::ExportError;
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut processes: Vec<Process> = source.processes().iter().map(|process| Process::new(source, process)).collect();
    let range = source.options().part.range.clone().unwrap_or(0..u64::MAX);
    source
        .visit_events_from_start(&mut |timed| Ok(processes[source.place_of(timed.process)].event(&timed, &range, out)?))
}

/// A process, and what its threads have begun.
struct Process {
    recording: ProcessRecording,
    names: RecordedNames,
    visible: VisibleFrames,
    /// The frames that each one of the recording stands for, as text, without those that are not seen.
    texts: HashMap<(u32, u64), Box<[u8]>>,
    threads: HashMap<u32, Thread>,
    /// By the addresses of objects: the labels that name them.
    tasks: HashMap<u64, u32>,
    /// The frames of a stack, outermost first, and what is seen of each.
    stack: Vec<(u32, u64)>,
}

#[derive(Default)]
struct Thread {
    /// What it has begun, outermost first.
    open: OpenStack<u32>,
    /// The ticks at which events of it are missing, the next one last.
    losses: Vec<u64>,
    /// The frame of its tag; 0 if it has none.
    tag: u32,
}

impl Thread {
    /// Something is open. Whether it has to be begun: then all is ended that was open in its place.
    fn open(&mut self, frame: u32, kind: &EventKind, event: &Event<'_>) -> bool {
        let depth = depth(kind, event);
        while self.losses.last().is_some_and(|lost| event.ticks > *lost) {
            self.losses.pop();
        }
        if !self.open.goes_on(depth) {
            self.end_beyond();
        }
        if frame == 0 {
            self.open.open_nothing(depth);
            self.end_beyond();
            return false;
        }
        let has_begun = self.open.open(depth, |open| *open == frame);
        if has_begun {
            self.end_beyond();
        }
        has_begun
    }

    /// Something else happens: what the opens before it have left out has ended, and so has all where events were lost.
    fn settle(&mut self, ticks: u64) {
        self.end_beyond();
        while self.losses.last().is_some_and(|lost| ticks > *lost) {
            while self.open.take_innermost().is_some() {}
            self.losses.pop();
        }
    }

    fn end_beyond(&mut self) {
        while self.open.take_beyond().is_some() {}
    }
}

impl Process {
    fn new(source: &Source<'_>, process: &ProcessRecording) -> Self {
        let frames: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
        Self {
            recording: process.clone(),
            names: source.names(process, &frames),
            visible: VisibleFrames::new(process, source.view()),
            texts: HashMap::new(),
            threads: HashMap::new(),
            tasks: HashMap::new(),
            stack: Vec::new(),
        }
    }

    fn event(&mut self, timed: &TimedEvent<'_>, range: &Range<u64>, out: &mut dyn Write) -> io::Result<()> {
        let recording = self.recording.clone();
        let Some(kind) = recording.dictionary().kind(timed.event.kind) else { return Ok(()) };
        let new_thread = || Thread { losses: losses(&recording, timed.thread), ..Thread::default() };
        let thread = self.threads.entry(timed.thread).or_insert_with(new_thread);
        let frame = number(kind, &timed.event, FieldType::Frame);
        let has_begun = if kind.role == Role::Open {
            thread.open(frame, kind, &timed.event)
        } else {
            thread.settle(timed.event.ticks);
            matches!(kind.role, Role::Begin | Role::Resume)
        };
        let is_told = has_begun || matches!(kind.role, Role::Instant | Role::Sample) || is_memory(kind.role);
        let says_something = !kind.fields.is_empty() || kind.name == EventKind::END_LEFT_OPEN.name;
        let is_told = is_told || kind.role == Role::End && says_something && !thread.open.is_empty();
        if kind.role == Role::Tag {
            thread.tag = frame;
        }
        let is_inside = u64::try_from(timed.time_ns).is_ok_and(|time| range.contains(&time));
        if is_inside && is_told {
            self.write(timed, kind, out)?;
        }
        let open = &mut self.threads.entry(timed.thread).or_default().open;
        match kind.role {
            Role::Open if has_begun => open.begin_open(depth(kind, &timed.event), frame),
            Role::Begin | Role::Resume => open.begin(frame),
            Role::End => drop(open.end()),
            _ => {}
        }
        self.name_object(timed, kind, frame);
        Ok(())
    }

    /// Objects keep the names they are given until others begin in their places.
    fn name_object(&mut self, timed: &TimedEvent<'_>, kind: &EventKind, frame: u32) {
        let object = || object(kind, &timed.event);
        match kind.role {
            Role::Begin => drop(object().map(|object| self.tasks.remove(&object))),
            Role::Name => drop(object().map(|object| self.tasks.insert(object, frame))),
            _ => {}
        }
    }

    fn write(&mut self, timed: &TimedEvent<'_>, kind: &EventKind, out: &mut dyn Write) -> io::Result<()> {
        let pid = self.recording.start().pid;
        write!(out, "{{\"time_ns\":{},\"process\":{pid}", timed.time_ns)?;
        let thread = self.recording.dictionary().thread(timed.thread);
        write!(out, ",\"thread\":{}", thread.map_or(timed.thread, |thread| thread.tid))?;
        if let Some(thread) = thread.filter(|thread| !thread.name.is_empty()) {
            out.write_all(b",\"thread_name\":")?;
            write_text(out, &thread.name)?;
        }
        out.write_all(b",\"kind\":")?;
        write_text(out, &kind.name)?;
        self.write_values(timed, kind, out)?;
        self.write_frames(timed, kind, out)
    }

    /// All values but the stack. The first frame is what the event is called; the one that calls it has its place too.
    fn write_values(&mut self, timed: &TimedEvent<'_>, kind: &EventKind, out: &mut dyn Write) -> io::Result<()> {
        let event = &timed.event;
        let tag = self.threads.get(&timed.thread).map_or(0, |thread| thread.tag);
        let first_frame = kind.position_of(FieldType::Frame);
        for (place, (field, &word)) in kind.fields.iter().zip(event.words).enumerate() {
            let is_frame = field.of == FieldType::Frame;
            if is_frame && matches!(kind.role, Role::Tag | Role::Usage) {
                self.write_label(&field.name, word, out)?;
                continue;
            }
            if is_frame && Some(place) != first_frame {
                self.write_caller(&field.name, word, out)?;
                continue;
            }
            let key = if is_frame { "name" } else { &field.name };
            if field.of == FieldType::Stack {
                continue;
            }
            out.write_all(b",")?;
            write_text(out, key)?;
            out.write_all(b":")?;
            match field.of {
                FieldType::Frame => {
                    let name = u32::try_from(word).ok().and_then(|frame| self.names.of(frame).first());
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
        if matches!(kind.role, Role::Allocate | Role::Map) && tag != 0 {
            self.write_label("tag", tag.into(), out)?;
        }
        let task = object(kind, event).and_then(|object| self.tasks.get(&object)).filter(|_| kind.role != Role::Begin);
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

    /// The name of a label, or null if there is none.
    fn write_label(&self, key: &str, word: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b",")?;
        write_text(out, if key == "frame" { "name" } else { key })?;
        out.write_all(b":")?;
        match u32::try_from(word).ok().and_then(|frame| self.names.of(frame).first()) {
            Some(frame) => write_text(out, &frame.name),
            None => out.write_all(b"null"),
        }
    }

    fn write_caller(&mut self, key: &str, word: u64, out: &mut dyn Write) -> io::Result<()> {
        let frame = u32::try_from(word).unwrap_or(0);
        let frames = self.names.of(frame);
        if frames.is_empty() {
            return Ok(());
        }
        out.write_all(b",")?;
        write_text(out, key)?;
        out.write_all(b":")?;
        out.write_all(self.texts.entry((frame, 1)).or_insert_with(|| text(frames, 1)))
    }

    fn write_frames(&mut self, timed: &TimedEvent<'_>, kind: &EventKind, out: &mut dyn Write) -> io::Result<()> {
        self.take_stack(timed, kind);
        out.write_all(b",\"frames\":[")?;
        let mut separator: &[u8] = b"";
        for &(frame, seen) in self.stack.iter().rev().filter(|(_, seen)| *seen != 0) {
            out.write_all(separator)?;
            separator = b",";
            let text = self.texts.entry((frame, seen)).or_insert_with(|| text(self.names.of(frame), seen));
            out.write_all(text)?;
        }
        out.write_all(b"]}\n")
    }

    /// The stack of an event, outermost first.
    fn take_stack(&mut self, timed: &TimedEvent<'_>, kind: &EventKind) {
        self.stack.clear();
        match number(kind, &timed.event, FieldType::Stack) {
            0 => {
                let open = self.threads.get(&timed.thread).into_iter().flat_map(|thread| thread.open.iter());
                self.stack.extend(open.map(|frame| (*frame, 0)));
            }
            stack => {
                self.stack.extend(self.recording.dictionary().frames_of(stack).map(|frame| (frame, 0)));
                self.stack.reverse();
            }
        }
        let mut is_library = false;
        for (frame, seen) in &mut self.stack {
            *seen = self.visible.seen(*frame, self.names.of(*frame), &mut is_library);
        }
    }
}

fn is_memory(role: Role) -> bool {
    let happens = matches!(role, Role::Allocate | Role::Free | Role::Complete | Role::Map | Role::Unmap | Role::Keep);
    happens || matches!(role, Role::Tag | Role::Usage)
}

/// The number that the first field of this type has; 0 if there is none.
fn number(kind: &EventKind, event: &Event<'_>, of: FieldType) -> u32 {
    let word = kind.position_of(of).and_then(|place| event.words.get(place));
    word.and_then(|word| u32::try_from(*word).ok()).unwrap_or(0)
}

/// How many are open around what is open.
fn depth(kind: &EventKind, event: &Event<'_>) -> u64 {
    kind.position_of(FieldType::Unsigned).and_then(|place| event.words.get(place)).copied().unwrap_or(0)
}

/// The object of spans that have one.
fn object(kind: &EventKind, event: &Event<'_>) -> Option<u64> {
    let has_object = matches!(kind.role, Role::Begin | Role::Resume | Role::Open | Role::Name);
    let place = kind.position_of(FieldType::Address).filter(|_| has_object)?;
    event.words.get(place).copied().filter(|object| *object != 0)
}

fn text(frames: &[Frame], seen: u64) -> Box<[u8]> {
    let mut text = Vec::new();
    for (_, frame) in frames.iter().enumerate().filter(|(place, _)| seen >> place & 1 == 1) {
        if !text.is_empty() {
            text.push(b',');
        }
        // Nothing fails in memory.
        let _ = frame.write_json(&mut text);
    }
    text.into()
}

fn write_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}

fn write_value(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}
