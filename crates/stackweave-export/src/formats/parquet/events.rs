//! The events of one process as rows. A span is one row, written when it ends.

use std::collections::HashMap;
use std::rc::Rc;

use stackweave_core::EventKind;

use crate::activity::{Details, EventContent, NamedProcess, Span, SpanEnding, ThreadEvent};
use crate::error::ExportError;
use crate::formats::parquet::functions::TableNumbers;
use crate::formats::parquet::history::History;
use crate::formats::parquet::table::{CellValue, ParquetTable};
use stackweave_recording::events::MemoryEvent;

pub(super) struct EventRows<'a> {
    process: &'a NamedProcess<'a>,
    frames: &'a mut TableNumbers,
    table: ParquetTable,
    history: History<'a>,
    threads: HashMap<u32, OpenRows>,
    /// The number of spans so far.
    spans: i64,
}

/// The open spans of a thread.
#[derive(Debug, Default)]
struct OpenRows {
    rows: Vec<OpenRow>,
    /// Their number for each function.
    functions: HashMap<u32, usize>,
}

impl OpenRows {
    fn begin(&mut self, row: OpenRow) {
        *self.functions.entry(row.function).or_default() += 1;
        self.rows.push(row);
    }

    /// Ends the innermost span; also returns whether no span of its function is around it.
    fn end(&mut self) -> Option<(OpenRow, bool)> {
        let ended = self.rows.pop()?;
        let left = self.functions.get_mut(&ended.function)?;
        *left -= 1;
        Some((ended, *left == 0))
    }
}

/// An open function.
#[derive(Clone, Copy, Debug)]
struct OpenRow {
    span: i64,
    frame: u32,
    function: u32,
    /// The time of the functions inside it.
    inside: u64,
}

/// The columns that most kinds of events do not have.
#[derive(Debug, Default)]
struct OptionalColumns {
    duration: Option<u64>,
    self_time: Option<u64>,
    span: Option<i64>,
    is_outermost: Option<bool>,
    is_unfinished: Option<bool>,
    is_call: Option<bool>,
    frame: u32,
    caller: u32,
    stack: u32,
    value: Option<f64>,
    weight: Option<i64>,
    address: Option<u64>,
    size: Option<u64>,
    /// The name of its kind in the recording.
    event: Option<Rc<str>>,
    tag: u32,
    device: Option<i64>,
    stream: Option<u64>,
    pool: Option<u64>,
    details: Details,
}

impl<'a> EventRows<'a> {
    pub(super) fn new(
        process: &'a NamedProcess<'a>,
        frames: &'a mut TableNumbers,
        [table, allocations]: [ParquetTable; 2],
    ) -> Self {
        let history = History::new(process, allocations);
        Self { process, frames, table, history, threads: HashMap::new(), spans: 0 }
    }

    pub(super) fn finish(self) -> Result<u64, ExportError> {
        Ok(self.table.finish()? + self.history.finish()?)
    }

    pub(super) fn add(&mut self, event: &ThreadEvent<'_>) -> Result<(), ExportError> {
        let ThreadEvent { thread, time, .. } = *event;
        match &event.content {
            EventContent::Begin(span) => {
                self.begin(thread, span.frame);
                Ok(())
            }
            EventContent::End(span, ending) => self.end(event, span, *ending),
            EventContent::Instant { frame, stack, details } => {
                let frame = self.last_frame(*frame);
                let rest =
                    OptionalColumns { frame, stack: *stack, details: details.clone(), ..OptionalColumns::default() };
                self.row("instant", (thread, time), &rest)
            }
            EventContent::Counter { frame, value } => {
                let rest = OptionalColumns {
                    frame: self.last_frame(*frame),
                    value: Some(*value),
                    ..OptionalColumns::default()
                };
                self.row("counter", (thread, time), &rest)
            }
            EventContent::Sample { stack, weight, details } => {
                let rest = OptionalColumns {
                    stack: *stack,
                    weight: Some(*weight),
                    details: details.clone(),
                    ..OptionalColumns::default()
                };
                self.row("sample", (thread, time), &rest)
            }
            EventContent::Allocate { memory, tag, allocator, details } => {
                self.allocate(event, (memory, *tag), (allocator, details))
            }
            EventContent::Free { memory, name } => {
                self.history.free(event, memory)?;
                let kind = if memory.region.is_range() { "unmap" } else { "free" };
                let rest = OptionalColumns {
                    event: Some(Rc::clone(name)),
                    address: Some(memory.address),
                    size: (memory.region.is_range() || memory.size > 0).then_some(memory.size),
                    stack: memory.stack,
                    device: Some(memory.region.device()),
                    ..OptionalColumns::default()
                };
                self.row(kind, (thread, time), &rest)
            }
            EventContent::Keep { address } => {
                self.history.keep(event, *address);
                self.row(
                    "keep",
                    (thread, time),
                    &OptionalColumns { address: Some(*address), ..OptionalColumns::default() },
                )
            }
            EventContent::Tag { frame } => {
                let frame = if *frame == 0 { 0 } else { self.last_frame(*frame) };
                self.row("tag", (thread, time), &OptionalColumns { frame, ..OptionalColumns::default() })
            }
            EventContent::Usage { name, usage, details } => {
                let frame = if usage.allocator == 0 { 0 } else { self.last_frame(usage.allocator) };
                let rest = OptionalColumns {
                    event: Some(Rc::clone(name)),
                    frame,
                    stack: usage.stack,
                    details: details.clone(),
                    ..OptionalColumns::default()
                };
                self.row("usage", (thread, time), &rest)
            }
        }
    }

    fn allocate(
        &mut self,
        event: &ThreadEvent<'_>,
        (memory, tag): (&MemoryEvent, u32),
        (allocator, details): (&Rc<str>, &Details),
    ) -> Result<(), ExportError> {
        let tag = if tag == 0 { 0 } else { self.last_frame(tag) };
        self.history.allocate(event, (memory, tag), allocator)?;
        let is_host = memory.region.device() != EventKind::OWN_DEVICE;
        let rest = OptionalColumns {
            event: Some(Rc::clone(allocator)),
            address: Some(memory.address),
            size: Some(memory.size),
            stack: memory.stack,
            tag,
            device: Some(memory.region.device()),
            stream: is_host.then_some(memory.stream),
            pool: is_host.then_some(memory.pool),
            details: details.clone(),
            ..OptionalColumns::default()
        };
        let kind = if memory.region.is_range() { "map" } else { "allocate" };
        self.row(kind, (event.thread, event.time), &rest)
    }

    /// Returns the innermost function of a frame.
    fn last_frame(&mut self, frame: u32) -> u32 {
        self.frames.of(self.process, frame).last().unwrap_or(0)
    }

    fn begin(&mut self, thread: u32, frame: u32) {
        let open = self.threads.entry(thread).or_default();
        for frame in self.frames.of(self.process, frame) {
            self.spans += 1;
            open.begin(OpenRow { span: self.spans, frame, function: self.frames.function_of(frame), inside: 0 });
        }
    }

    /// Writes the rows of a span: one for each function of its frame.
    fn end(&mut self, event: &ThreadEvent<'_>, span: &Span, ending: SpanEnding) -> Result<(), ExportError> {
        let ThreadEvent { thread, time, .. } = *event;
        let duration = time - span.began;
        let functions = self.frames.of(self.process, span.frame);
        let caller = if span.caller == 0 { 0 } else { self.last_frame(span.caller) };
        let details = span.all_details();
        for index in (0..functions.len()).rev() {
            let open = self.threads.entry(thread).or_default();
            let Some((ended, is_outermost)) = open.end() else { break };
            if let Some(around) = open.rows.last_mut() {
                around.inside = around.inside.saturating_add(duration);
            }
            let is_innermost = index + 1 == functions.len();
            let object = span.object.filter(|_| is_innermost);
            let rest = OptionalColumns {
                duration: Some(duration),
                self_time: Some(duration.saturating_sub(ended.inside)),
                span: Some(ended.span),
                is_outermost: Some(is_outermost),
                is_unfinished: Some(ending == SpanEnding::Unfinished),
                is_call: Some(span.is_call),
                frame: ended.frame,
                caller: if index == 0 { caller } else { 0 },
                stack: if is_innermost { span.stack } else { 0 },
                address: object.map(|object| object.address),
                details: if is_innermost { details.clone() } else { Details::default() },
                ..OptionalColumns::default()
            };
            self.row("span", (thread, span.began), &rest)?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        kind: &'static str,
        (thread, time): (u32, u64),
        rest: &OptionalColumns,
    ) -> Result<(), ExportError> {
        let since_start = time.saturating_sub(self.process.began);
        let wall = self.process.recording.timeline().wall_ns(since_start);
        let around = self.threads.get(&thread).and_then(|open| open.rows.last());
        let word = |word: Option<u64>| CellValue::some(word, CellValue::word);
        self.table.row([
            CellValue::text(kind),
            CellValue::Integer(thread.into()),
            CellValue::Integer(wall),
            CellValue::word(since_start),
            word(rest.duration),
            word(rest.self_time),
            CellValue::some(rest.span, CellValue::Integer),
            CellValue::some(around, |around| CellValue::Integer(around.span)),
            CellValue::some(rest.is_outermost, CellValue::Bool),
            CellValue::some(rest.is_unfinished, CellValue::Bool),
            CellValue::some(rest.is_call, CellValue::Bool),
            CellValue::number(rest.frame),
            CellValue::number(rest.caller),
            CellValue::number(rest.stack),
            CellValue::some(rest.value, CellValue::Double),
            CellValue::some(rest.weight, CellValue::Integer),
            word(rest.address),
            word(rest.size),
            CellValue::some(rest.event.as_deref(), CellValue::text),
            CellValue::number(rest.tag),
            CellValue::some(rest.device, CellValue::Integer),
            word(rest.stream),
            word(rest.pool),
            CellValue::some(rest.details.as_str(), CellValue::text),
        ])
    }
}
