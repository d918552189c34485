//! Turns events into matched starts and ends of spans.
//!
//! Only the open spans are kept in memory.

mod report;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use stackweave_profile::WordMap;
use stackweave_recording::events::{Begin, Event, ObjectName, OpenSpan};
use stackweave_recording::read::{Ended, OpenStack};
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::kinds::{EventKinds, label_text};
use crate::activity::objects::SuspendedObjects;
use crate::activity::{Span, SpanEnding, ThreadEvent};
use crate::error::ExportError;
use crate::source::Source;

pub(crate) type Visitor<'v> = dyn FnMut(&ThreadEvent<'_>) -> Result<(), ExportError> + 'v;

/// Visits all events in the selected time. Spans that began earlier begin with the selected time.
pub(crate) fn visit(source: &Source<'_>, visitor: &mut Visitor<'_>) -> Result<(), ExportError> {
    let mut visit = Visit::new(source);
    // Copies of a process share their data.
    let id = |process: &ProcessRecording| core::ptr::from_ref(process.start());
    let indexes: HashMap<_, usize> = source.processes().iter().map(id).zip(0..).collect();
    source.visit_events_from_start(&mut |event| {
        indexes.get(&id(event.process)).map_or(Ok(()), |process| visit.raw_event(*process, &event, visitor))
    })?;
    visit.finish(source, visitor)
}

/// Visits the events of the process with this index.
pub(crate) fn visit_process(source: &Source<'_>, process: usize, visitor: &mut Visitor<'_>) -> Result<(), ExportError> {
    let mut visit = Visit::new(source);
    source.visit_process_from_start(process, &mut |event| visit.raw_event(process, &event, visitor))?;
    visit.finish(source, visitor)
}

/// Visits the events of one thread of the process with this index.
pub(crate) fn visit_thread(
    source: &Source<'_>,
    (process, thread): (usize, u32),
    visitor: &mut Visitor<'_>,
) -> Result<(), ExportError> {
    let mut visit = Visit::new(source);
    source.visit_thread(process, thread, &mut |event| visit.raw_event(process, &event, visitor))?;
    visit.finish(source, visitor)
}

/// The kinds of all processes.
pub(crate) type AllKinds = Rc<[EventKinds]>;

/// Returns the kinds of all processes.
pub(crate) fn all_kinds(source: &Source<'_>) -> AllKinds {
    source.processes().iter().map(EventKinds::of).collect()
}

/// A visit of events, which are added one after another.
#[derive(Debug)]
pub(crate) struct Visit {
    range: Range<u64>,
    kinds: AllKinds,
    /// The index of each thread in `threads`, by its process and its number there.
    thread_indexes: WordMap<(usize, u32), usize>,
    threads: Vec<VisitedThread>,
    objects: SuspendedObjects,
    /// Whether the selected time has begun.
    is_inside: bool,
    /// Whether events of memory are not reported.
    omits_memory: bool,
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

impl Visit {
    fn new(source: &Source<'_>) -> Self {
        Self::with_kinds(source, all_kinds(source))
    }

    /// Starts a visit that does not report events of memory.
    pub(crate) fn without_memory(source: &Source<'_>, kinds: AllKinds) -> Self {
        Self { omits_memory: true, ..Self::with_kinds(source, kinds) }
    }

    fn with_kinds(source: &Source<'_>, kinds: AllKinds) -> Self {
        let range = source.options().part.range.clone().unwrap_or(0..u64::MAX);
        let is_inside = range.start == 0;
        let (thread_indexes, threads, objects) = Default::default();
        Self { range, kinds, thread_indexes, threads, objects, is_inside, omits_memory: false }
    }

    fn raw_event(
        &mut self,
        process: usize,
        timed: &TimedEvent<'_>,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        let event = self.kinds[process].decode(&timed.event);
        self.event(process, (timed, &event), visitor)
    }

    /// Visits an event of the process with this index. Its time is in nanoseconds since the first process began to
    /// record.
    pub(crate) fn event(
        &mut self,
        process: usize,
        (timed, event): (&TimedEvent<'_>, &Event<'_>),
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        let time = u64::try_from(timed.time_ns).unwrap_or(0);
        if !self.is_inside && time > self.range.start {
            self.enter_range(visitor)?;
        }
        let index = self.thread_index(process, timed.process, timed.thread);
        let mut threads = core::mem::take(&mut self.threads);
        let result = self.pass(&mut threads[index], (timed, event), time, visitor);
        self.threads = threads;
        result
    }

    fn pass(
        &mut self,
        thread: &mut VisitedThread,
        (timed, event): (&TimedEvent<'_>, &Event<'_>),
        time: u64,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        let is_open = matches!(event, Event::Open(_));
        if !is_open && thread.open.was_recorded_open() {
            self.end_beyond(thread, visitor)?;
        }
        while thread.losses.last().is_some_and(|lost| timed.event.ticks > *lost) {
            // An open states which spans are still open.
            if !is_open {
                self.end_all(thread, None, visitor)?;
            }
            thread.losses.pop();
        }
        thread.now = thread.now.max(time);
        if !is_open {
            thread.last_seen = thread.now;
        }
        self.thread_event(thread, timed, event, visitor)
    }

    fn thread_event(
        &mut self,
        thread: &mut VisitedThread,
        timed: &TimedEvent<'_>,
        event: &Event<'_>,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        match event {
            Event::Begin(begin) => {
                let Begin { frame, caller, stack, object, is_resumed, .. } = *begin;
                let span = Span { frame, stack, caller, is_call: true, ..Span::default() };
                let span = self.complete(span, thread, (timed, event), (object, !is_resumed));
                thread.open.begin(span);
                if self.is_inside { thread.report_begin(thread.open.len() - 1, visitor) } else { Ok(()) }
            }
            Event::Open(open) => self.open(thread, timed, open, visitor),
            Event::End(_) => match thread.open.end() {
                Ended::Known(mut span) => {
                    span.at_end = self.kinds[thread.process].details(&timed.event, event, timed.process);
                    self.report_end(thread, span, (thread.now, SpanEnding::Ended), visitor)
                }
                Ended::Unknown | Ended::Nothing => Ok(()),
            },
            Event::Name(name) => {
                self.name(thread, timed.process, *name);
                Ok(())
            }
            // Completed frees were reported as frees, and the listings of hosts are not events.
            Event::Complete(_) | Event::State(_) => Ok(()),
            Event::Allocate(_) | Event::Free(_) | Event::Keep { .. } | Event::Tag { .. } | Event::Usage(_)
                if self.omits_memory =>
            {
                Ok(())
            }
            event => {
                if let Event::Tag { frame } = event {
                    thread.tag = *frame;
                }
                if !self.range.contains(&thread.now) {
                    return Ok(());
                }
                let kinds = &self.kinds[thread.process];
                let Some(content) = report::content(kinds, timed, event, thread.tag) else { return Ok(()) };
                thread.report(thread.now, content, visitor)
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
    fn open(
        &mut self,
        thread: &mut VisitedThread,
        timed: &TimedEvent<'_>,
        open: &OpenSpan,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        let OpenSpan { frame, caller, stack, object, depth } = *open;
        if !thread.open.goes_on(depth) {
            self.end_beyond(thread, visitor)?;
        }
        if frame == 0 {
            thread.open.open_nothing(depth);
            return self.end_beyond(thread, visitor);
        }
        if !thread.open.open(depth, |span| span.frame == frame) {
            return Ok(());
        }
        self.end_beyond(thread, visitor)?;
        let span = Span { frame, stack, caller, ..Span::default() };
        let span = self.complete(span, thread, (timed, &Event::Open(*open)), (object, false));
        thread.open.begin_open(depth, span);
        if self.is_inside { thread.report_begin(thread.open.len() - 1, visitor) } else { Ok(()) }
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
