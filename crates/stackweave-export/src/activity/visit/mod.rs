//! Turns events into matched starts and ends of spans.
//!
//! Only the open spans are kept in memory.

mod report;

use std::collections::HashMap;
use std::ops::Range;

use stackweave_recording::events::{Begin, Event, ObjectName, OpenSpan};
use stackweave_recording::read::{Ended, OpenStack};
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::kinds::{EventKinds, label_text};
use crate::activity::objects::Objects;
use crate::activity::{Span, SpanEnd, ThreadEvent};
use crate::error::ExportError;
use crate::source::Source;

type Visitor<'v> = dyn FnMut(&ThreadEvent<'_>) -> Result<(), ExportError> + 'v;

/// Visits all events in the selected time. Spans that began earlier begin with the selected time.
pub(crate) fn visit(source: &Source<'_>, visitor: &mut Visitor<'_>) -> Result<(), ExportError> {
    let mut visit = Visit::new(source, visitor);
    // Copies of a process share their data.
    let id = |process: &ProcessRecording| core::ptr::from_ref(process.start());
    let indexes: HashMap<_, usize> = source.processes().iter().map(id).zip(0..).collect();
    source.visit_events_from_start(&mut |event| {
        indexes.get(&id(event.process)).map_or(Ok(()), |process| visit.event(*process, &event))
    })?;
    visit.finish(source)
}

/// Visits the events of the process with this index.
pub(crate) fn visit_process(source: &Source<'_>, process: usize, visitor: &mut Visitor<'_>) -> Result<(), ExportError> {
    let mut visit = Visit::new(source, visitor);
    source.visit_process_from_start(process, &mut |event| visit.event(process, &event))?;
    visit.finish(source)
}

/// Visits the events of one thread of the process with this index.
pub(crate) fn visit_thread(
    source: &Source<'_>,
    (process, thread): (usize, u32),
    visitor: &mut Visitor<'_>,
) -> Result<(), ExportError> {
    let mut visit = Visit::new(source, visitor);
    source.visit_thread(process, thread, &mut |event| visit.event(process, &event))?;
    visit.finish(source)
}

struct Visit<'v, 'f> {
    range: Range<u64>,
    kinds: Vec<EventKinds>,
    /// The index of each thread in `threads`, by its process and its number there.
    thread_indexes: HashMap<(usize, u32), usize>,
    threads: Vec<VisitedThread>,
    objects: Objects,
    /// Whether the selected time has begun.
    is_inside: bool,
    visitor: &'v mut Visitor<'f>,
}

#[derive(Debug, Default)]
struct VisitedThread {
    process: usize,
    number: u32,
    open: OpenStack<Span>,
    now: u64,
    /// The time of the last event that was not an open.
    last_seen: u64,
    /// The frame of its tag; 0 if it has none.
    tag: u32,
    /// The ticks at which events are missing, the next one last.
    losses: Vec<u64>,
}

impl<'v, 'f> Visit<'v, 'f> {
    fn new(source: &Source<'_>, visitor: &'v mut Visitor<'f>) -> Self {
        let range = source.options().part.range.clone().unwrap_or(0..u64::MAX);
        let is_inside = range.start == 0;
        let kinds = source.processes().iter().map(EventKinds::of).collect();
        let (thread_indexes, threads, objects) = Default::default();
        Self { range, kinds, thread_indexes, threads, objects, is_inside, visitor }
    }

    fn event(&mut self, process: usize, timed: &TimedEvent<'_>) -> Result<(), ExportError> {
        let time = u64::try_from(timed.time_ns).unwrap_or(0);
        if !self.is_inside && time > self.range.start {
            self.enter_range()?;
        }
        let index = self.thread_index(process, timed.process, timed.thread);
        let mut thread = core::mem::take(&mut self.threads[index]);
        let event = self.kinds[process].decode(&timed.event);
        let is_open = matches!(event, Event::Open(_));
        if !is_open && thread.open.was_recorded_open() {
            self.end_beyond(&mut thread)?;
        }
        while thread.losses.last().is_some_and(|lost| timed.event.ticks > *lost) {
            // An open states which spans are still open.
            if !is_open {
                self.end_all(&mut thread, None)?;
            }
            thread.losses.pop();
        }
        thread.now = thread.now.max(time);
        if !is_open {
            thread.last_seen = thread.now;
        }
        let result = self.thread_event(&mut thread, timed, &event);
        self.threads[index] = thread;
        result
    }

    fn thread_event(
        &mut self,
        thread: &mut VisitedThread,
        timed: &TimedEvent<'_>,
        event: &Event<'_>,
    ) -> Result<(), ExportError> {
        match event {
            Event::Begin(begin) => {
                let Begin { frame, caller, stack, object, is_resumed, .. } = *begin;
                let span = Span { frame, stack, caller, is_call: true, ..Span::default() };
                let span = self.complete(span, thread, (timed, event), (object, !is_resumed));
                thread.open.begin(span);
                if self.is_inside { self.report_begin(thread, thread.open.len() - 1) } else { Ok(()) }
            }
            Event::Open(open) => self.open(thread, timed, open),
            Event::End(_) => match thread.open.end() {
                Ended::Known(mut span) => {
                    span.at_end = self.kinds[thread.process].details(&timed.event, event, timed.process);
                    self.report_end(thread, span, thread.now, SpanEnd::Ended)
                }
                Ended::Unknown | Ended::Nothing => Ok(()),
            },
            Event::Name(name) => {
                self.name(thread, timed.process, *name);
                Ok(())
            }
            // Completed frees were reported as frees, and the listings of hosts are not events.
            Event::Complete(_) | Event::State(_) => Ok(()),
            event => {
                if let Event::Tag { frame } = event {
                    thread.tag = *frame;
                }
                if !self.range.contains(&thread.now) {
                    return Ok(());
                }
                let kinds = &self.kinds[thread.process];
                let Some(content) = report::content(kinds, timed, event, thread.tag) else { return Ok(()) };
                self.report(thread, thread.now, content)
            }
        }
    }

    /// Completes a span that begins or is open. It belongs to the object at this address, which is new if `is_new`.
    fn complete(
        &mut self,
        mut span: Span,
        thread: &VisitedThread,
        (timed, event): (&TimedEvent<'_>, &Event<'_>),
        (address, is_new): (u64, bool),
    ) -> Span {
        let process = thread.process;
        (span.began, span.is_reported) = (thread.now, self.is_inside);
        span.details = self.kinds[process].details(&timed.event, event, timed.process);
        if address != 0 {
            let (mut object, name) = self.objects.begin(process, address, is_new);
            span.details = span.details.with_text("object", &format!("{address:#x}"));
            span.set_task(name.as_deref());
            if span.is_reported {
                self.objects.set_reported(process, &mut object);
            }
            span.object = Some(object);
        }
        span
    }

    /// Handles an open: begins the span if it is not known to be open, and ends other spans at its depth.
    fn open(&mut self, thread: &mut VisitedThread, timed: &TimedEvent<'_>, open: &OpenSpan) -> Result<(), ExportError> {
        let OpenSpan { frame, caller, stack, object, depth } = *open;
        if !thread.open.goes_on(depth) {
            self.end_beyond(thread)?;
        }
        if frame == 0 {
            thread.open.open_nothing(depth);
            return self.end_beyond(thread);
        }
        if !thread.open.open(depth, |span| span.frame == frame) {
            return Ok(());
        }
        self.end_beyond(thread)?;
        let span = Span { frame, stack, caller, ..Span::default() };
        let span = self.complete(span, thread, (timed, &Event::Open(*open)), (object, false));
        thread.open.begin_open(depth, span);
        if self.is_inside { self.report_begin(thread, thread.open.len() - 1) } else { Ok(()) }
    }

    /// Gives an object a name, and its open spans too.
    fn name(&mut self, thread: &mut VisitedThread, process: &ProcessRecording, name: ObjectName) {
        let ObjectName { frame, object } = name;
        let Some(text) = label_text(process.dictionary(), frame).filter(|_| object != 0) else { return };
        for span in thread.open.iter_mut().filter(|span| span.object.is_some_and(|known| known.address == object)) {
            span.set_task(Some(text));
        }
        self.objects.name(thread.process, object, text.into());
    }

    fn thread_index(&mut self, process: usize, recording: &ProcessRecording, number: u32) -> usize {
        let Self { thread_indexes, threads, .. } = self;
        *thread_indexes.entry((process, number)).or_insert_with(|| {
            let losses = recording.loss_ticks(number);
            threads.push(VisitedThread { process, number, losses, ..VisitedThread::default() });
            threads.len() - 1
        })
    }
}
