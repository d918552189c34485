//! Events to what happened.
//!
//! Kept are the spans that are open, and nothing of what is over.

use std::collections::HashMap;
use std::ops::Range;

use stackweave_recording::events::{Begin, Event, ObjectName, OpenSpan};
use stackweave_recording::read::{Ended, OpenStack};
use stackweave_recording::{ProcessRecording, TimedEvent};

use crate::activity::kinds::{Kinds, text_of};
use crate::activity::objects::Objects;
use crate::activity::{Ending, EventContent, Span, ThreadEvent};
use crate::error::ExportError;
use crate::source::Source;

type Tell<'t> = dyn FnMut(&ThreadEvent<'_>) -> Result<(), ExportError> + 't;

/// Tells all that happened in the time that is asked for. What began before it begins with it.
pub(crate) fn visit(source: &Source<'_>, tell: &mut Tell<'_>) -> Result<(), ExportError> {
    let mut visit = Visit::new(source, tell);
    // Copies of a process share what they are made of.
    let id = |process: &ProcessRecording| core::ptr::from_ref(process.start());
    let places: HashMap<_, usize> = source.processes().iter().map(id).zip(0..).collect();
    source.visit_events_from_start(&mut |event| {
        places.get(&id(event.process)).map_or(Ok(()), |place| visit.event(*place, &event))
    })?;
    visit.finish(source)
}

/// The same for the process at this place among all.
pub(crate) fn visit_process(source: &Source<'_>, place: usize, tell: &mut Tell<'_>) -> Result<(), ExportError> {
    let mut visit = Visit::new(source, tell);
    source.visit_process_from_start(place, &mut |event| visit.event(place, &event))?;
    visit.finish(source)
}

/// The same for one thread of it.
pub(crate) fn visit_thread(
    source: &Source<'_>,
    (place, thread): (usize, u32),
    tell: &mut Tell<'_>,
) -> Result<(), ExportError> {
    let mut visit = Visit::new(source, tell);
    source.visit_thread(place, thread, &mut |event| visit.event(place, &event))?;
    visit.finish(source)
}

struct Visit<'t, 'f> {
    range: Range<u64>,
    kinds: Vec<Kinds>,
    /// Where each thread is in `threads`, by process and number.
    places: HashMap<(usize, u32), usize>,
    threads: Vec<Thread>,
    objects: Objects,
    /// Whether the time that is asked for has begun.
    is_inside: bool,
    tell: &'t mut Tell<'f>,
}

#[derive(Debug, Default)]
struct Thread {
    process: usize,
    number: u32,
    open: OpenStack<Span>,
    now: u64,
    /// When something else than an open was told last.
    seen: u64,
    /// The frame of its tag; 0 if it has none.
    tag: u32,
    /// The ticks at which events are missing, the next one last.
    losses: Vec<u64>,
}

impl<'t, 'f> Visit<'t, 'f> {
    fn new(source: &Source<'_>, tell: &'t mut Tell<'f>) -> Self {
        let range = source.options().part.range.clone().unwrap_or(0..u64::MAX);
        let is_inside = range.start == 0;
        let kinds = source.processes().iter().map(Kinds::of).collect();
        let objects = Objects::default();
        Self { range, kinds, places: HashMap::new(), threads: Vec::new(), objects, is_inside, tell }
    }

    fn event(&mut self, process: usize, timed: &TimedEvent<'_>) -> Result<(), ExportError> {
        let time = u64::try_from(timed.time_ns).unwrap_or(0);
        if !self.is_inside && time > self.range.start {
            self.enter()?;
        }
        let place = self.place_of(process, timed.process, timed.thread);
        let mut thread = core::mem::take(&mut self.threads[place]);
        let event = self.kinds[process].decode(&timed.event);
        let is_open = matches!(event, Event::Open(_));
        if !is_open && thread.open.was_recorded_open() {
            self.end_beyond(&mut thread)?;
        }
        while thread.losses.last().is_some_and(|lost| timed.event.ticks > *lost) {
            // An open says itself what is still there.
            if !is_open {
                self.cut(&mut thread, None)?;
            }
            thread.losses.pop();
        }
        thread.now = thread.now.max(time);
        if !is_open {
            thread.seen = thread.now;
        }
        let done = self.one(&mut thread, timed, &event);
        self.threads[place] = thread;
        done
    }

    fn one(&mut self, thread: &mut Thread, timed: &TimedEvent<'_>, event: &Event<'_>) -> Result<(), ExportError> {
        match event {
            Event::Begin(begin) => {
                let Begin { frame, caller, stack, object, is_resumed, .. } = *begin;
                let span = Span { frame, stack, caller, is_call: true, ..Span::default() };
                let span = self.span(thread, timed, event, (span, object, !is_resumed));
                thread.open.begin(span);
                if self.is_inside { self.tell_begin(thread, thread.open.len() - 1) } else { Ok(()) }
            }
            Event::Open(open) => self.open(thread, timed, open),
            Event::End(_) => match thread.open.end() {
                Ended::Known(mut span) => {
                    span.at_end = self.kinds[thread.process].details(&timed.event, event, timed.process);
                    self.tell_end(thread, span, thread.now, Ending::Ended)
                }
                Ended::Unknown | Ended::Nothing => Ok(()),
            },
            Event::Name(name) => {
                self.name(thread, timed.process, *name);
                Ok(())
            }
            // What a thread freed is gone already, and an account is no event.
            Event::Complete(_) | Event::State(_) => Ok(()),
            event => {
                if let Event::Tag { frame } = event {
                    thread.tag = *frame;
                }
                if !self.range.contains(&thread.now) {
                    return Ok(());
                }
                let Some(what) = what(&self.kinds[thread.process], timed, event, thread.tag) else { return Ok(()) };
                self.tell(thread, thread.now, what)
            }
        }
    }

    /// Completes a span that begins or is open, of the object at this address, which begins with it if it `is_new`.
    fn span(
        &mut self,
        thread: &Thread,
        timed: &TimedEvent<'_>,
        event: &Event<'_>,
        (mut span, address, is_new): (Span, u64, bool),
    ) -> Span {
        let process = thread.process;
        (span.began, span.is_told) = (thread.now, self.is_inside);
        span.details = self.kinds[process].details(&timed.event, event, timed.process);
        if address != 0 {
            let (mut object, name) = self.objects.begin(process, address, is_new);
            span.details = span.details.with_text("object", &format!("{address:#x}"));
            span.name_task(name.as_deref());
            if span.is_told {
                self.objects.tell(process, &mut object);
            }
            span.object = Some(object);
        }
        span
    }

    /// Something is open: it begins if that is not known, and what is known to be open in its place ends.
    fn open(&mut self, thread: &mut Thread, timed: &TimedEvent<'_>, open: &OpenSpan) -> Result<(), ExportError> {
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
        let span = self.span(thread, timed, &Event::Open(*open), (span, object, false));
        thread.open.begin_open(depth, span);
        if self.is_inside { self.tell_begin(thread, thread.open.len() - 1) } else { Ok(()) }
    }

    /// Ends what the opens have left out: nobody saw that, and it was there at the last event before them.
    fn end_beyond(&mut self, thread: &mut Thread) -> Result<(), ExportError> {
        while let Some(span) = thread.open.take_beyond() {
            let ended = thread.seen.max(span.began);
            self.tell_end(thread, span, ended, Ending::Unfinished)?;
        }
        Ok(())
    }

    /// An object gets a name, and so do its spans that are open.
    fn name(&mut self, thread: &mut Thread, process: &ProcessRecording, name: ObjectName) {
        let ObjectName { frame, object } = name;
        let Some(text) = text_of(process.dictionary(), frame).filter(|_| object != 0) else { return };
        for span in thread.open.iter_mut().filter(|span| span.object.is_some_and(|of| of.address == object)) {
            span.name_task(Some(text));
        }
        self.objects.name(thread.process, object, text.into());
    }

    /// The time that is asked for begins: what is open begins with it.
    fn enter(&mut self) -> Result<(), ExportError> {
        self.is_inside = true;
        let mut threads = core::mem::take(&mut self.threads);
        for thread in &mut threads {
            for depth in 0..thread.open.len() {
                thread.open[depth].began = thread.open[depth].began.max(self.range.start);
                thread.open[depth].is_told = true;
                if let Some(object) = &mut thread.open[depth].object {
                    self.objects.tell(thread.process, object);
                }
                self.tell_begin(thread, depth)?;
            }
        }
        self.threads = threads;
        Ok(())
    }

    fn tell_begin(&mut self, thread: &Thread, depth: usize) -> Result<(), ExportError> {
        let span = &thread.open[depth];
        let around = &thread.open[..depth];
        let (process, number, time) = (thread.process, thread.number, span.began);
        (self.tell)(&ThreadEvent { process, thread: number, time, around, content: EventContent::Begin(span) })
    }

    fn tell_end(&mut self, thread: &Thread, mut span: Span, time: u64, ending: Ending) -> Result<(), ExportError> {
        let Range { start, end } = self.range;
        if span.began >= end || (time <= start && span.began < start) {
            return Ok(());
        }
        let time = time.min(end);
        let (process, number, around) = (thread.process, thread.number, &*thread.open);
        if !span.is_told {
            span.is_told = true;
            if let Some(object) = &mut span.object {
                self.objects.tell(process, object);
            }
            let content = EventContent::Begin(&span);
            (self.tell)(&ThreadEvent { process, thread: number, time: span.began, around, content })?;
        }
        (self.tell)(&ThreadEvent { process, thread: number, time, around, content: EventContent::End(&span, ending) })
    }

    fn tell(&mut self, thread: &Thread, time: u64, content: EventContent<'_>) -> Result<(), ExportError> {
        let (process, number, around) = (thread.process, thread.number, &*thread.open);
        (self.tell)(&ThreadEvent { process, thread: number, time, around, content })
    }

    /// Ends what is open, at the time of the thread's last event, or at `until` if it is known to go on until then.
    fn cut(&mut self, thread: &mut Thread, until: Option<u64>) -> Result<(), ExportError> {
        let ended = until.map_or(thread.now, |until| until.max(thread.now));
        let ending = if until.is_some() { Ending::Ended } else { Ending::Unfinished };
        while let Some(span) = thread.open.take_innermost() {
            self.tell_end(thread, span, ended, ending)?;
        }
        Ok(())
    }

    fn finish(mut self, source: &Source<'_>) -> Result<(), ExportError> {
        let end = self.range.end;
        let last_time = |thread: &Thread| {
            let process = &source.processes()[thread.process];
            let ticks = process.last_ticks(thread.number).unwrap_or(0);
            source.began(process).saturating_add(process.timeline().nanoseconds(ticks))
        };
        for mut thread in core::mem::take(&mut self.threads) {
            let goes_on = last_time(&thread) >= end;
            self.cut(&mut thread, goes_on.then_some(end))?;
        }
        Ok(())
    }

    fn place_of(&mut self, process: usize, recording: &ProcessRecording, number: u32) -> usize {
        let Self { places, threads, .. } = self;
        *places.entry((process, number)).or_insert_with(|| {
            threads.push(Thread { process, number, losses: recording.loss_ticks(number), ..Thread::default() });
            threads.len() - 1
        })
    }
}

fn what<'e>(kinds: &Kinds, timed: &TimedEvent<'_>, event: &Event<'_>, tag: u32) -> Option<EventContent<'e>> {
    let name = || kinds.name(timed.event.kind);
    let details = || kinds.details(&timed.event, event, timed.process);
    Some(match *event {
        Event::Counter(counter) => EventContent::Counter { frame: counter.frame, value: counter.value },
        Event::Sample(sample) => {
            EventContent::Sample { stack: sample.stack, weight: sample.weight, details: details() }
        }
        Event::Allocate(memory) => EventContent::Allocate { memory, tag, allocator: name(), details: details() },
        Event::Free(memory) => EventContent::Free { memory, name: name() },
        Event::Keep { address } => EventContent::Keep { address },
        Event::Tag { frame } => EventContent::Tag { frame },
        Event::Usage(usage) => {
            EventContent::Usage { name: name(), frame: usage.allocator, stack: usage.stack, details: details() }
        }
        Event::Instant(instant) => {
            EventContent::Instant { frame: instant.frame, stack: instant.stack, details: details() }
        }
        Event::Begin(_)
        | Event::Open(_)
        | Event::End(_)
        | Event::Name(_)
        | Event::Complete(_)
        | Event::State(_)
        | Event::Other => return None,
    })
}
