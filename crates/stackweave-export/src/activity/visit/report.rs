//! Reports starts, ends and other events to the visitor.

use std::ops::Range;

use stackweave_recording::TimedEvent;
use stackweave_recording::events::Event;

use super::{Visit, VisitedThread, Visitor};
use crate::activity::kinds::EventKinds;
use crate::activity::{EventContent, Span, SpanEnding, ThreadEvent};
use crate::error::ExportError;
use crate::source::Source;

impl VisitedThread {
    pub(super) fn report_begin(&self, depth: usize, visitor: &mut Visitor<'_>) -> Result<(), ExportError> {
        let span = &self.open[depth];
        let around = &self.open[..depth];
        let (process, thread, time) = (self.process, self.number, span.began);
        visitor(&ThreadEvent { process, thread, time, around, content: EventContent::Begin(span) })
    }

    pub(super) fn report(
        &self,
        time: u64,
        content: EventContent<'_>,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        let (process, thread, around) = (self.process, self.number, &*self.open);
        visitor(&ThreadEvent { process, thread, time, around, content })
    }
}

impl Visit {
    /// Begins the selected time, and the open spans with it.
    pub(super) fn enter_range(&mut self, visitor: &mut Visitor<'_>) -> Result<(), ExportError> {
        self.is_inside = true;
        let mut threads = core::mem::take(&mut self.threads);
        for thread in &mut threads {
            for depth in 0..thread.open.len() {
                thread.open[depth].began = thread.open[depth].began.max(self.range.start);
                thread.open[depth].is_reported = true;
                if let Some(object) = &mut thread.open[depth].object {
                    self.objects.set_reported(thread.process, object);
                }
                thread.report_begin(depth, visitor)?;
            }
        }
        self.threads = threads;
        Ok(())
    }

    pub(super) fn report_end(
        &mut self,
        thread: &VisitedThread,
        mut span: Span,
        (time, ending): (u64, SpanEnding),
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        let Range { start, end } = self.range;
        if span.began >= end || (time <= start && span.began < start) {
            return Ok(());
        }
        let time = time.min(end);
        let (process, number, around) = (thread.process, thread.number, &*thread.open);
        if !span.is_reported {
            span.is_reported = true;
            if let Some(object) = &mut span.object {
                self.objects.set_reported(process, object);
            }
            let content = EventContent::Begin(&span);
            visitor(&ThreadEvent { process, thread: number, time: span.began, around, content })?;
        }
        let content = EventContent::End(&span, ending);
        visitor(&ThreadEvent { process, thread: number, time, around, content })
    }

    /// Ends the spans that the opens did not repeat. Their ends were not recorded: they were open at the last event
    /// before the opens.
    pub(super) fn end_beyond(
        &mut self,
        thread: &mut VisitedThread,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        while let Some(span) = thread.open.take_beyond() {
            let ended = thread.last_seen.max(span.began);
            self.report_end(thread, span, (ended, SpanEnding::Unfinished), visitor)?;
        }
        Ok(())
    }

    /// Ends all open spans at the time of the thread's last event, or at `until` if they are known to be open until
    /// then.
    pub(super) fn end_all(
        &mut self,
        thread: &mut VisitedThread,
        until: Option<u64>,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), ExportError> {
        let ended = until.map_or(thread.now, |until| until.max(thread.now));
        let ending = if until.is_some() { SpanEnding::Ended } else { SpanEnding::Unfinished };
        while let Some(span) = thread.open.take_innermost() {
            self.report_end(thread, span, (ended, ending), visitor)?;
        }
        Ok(())
    }

    /// Ends the spans that are open at the end of the selected time or of the recording.
    pub(crate) fn finish(mut self, source: &Source<'_>, visitor: &mut Visitor<'_>) -> Result<(), ExportError> {
        let end = self.range.end;
        let last_time = |thread: &VisitedThread| {
            let process = &source.processes()[thread.process];
            let ticks = process.last_ticks(thread.number).unwrap_or(0);
            source.began(process).saturating_add(process.timeline().nanoseconds(ticks))
        };
        for mut thread in core::mem::take(&mut self.threads) {
            let goes_on = last_time(&thread) >= end;
            self.end_all(&mut thread, goes_on.then_some(end), visitor)?;
        }
        Ok(())
    }
}

/// Returns the content of an event that is not about spans; `None` for the others.
pub(super) fn content<'e>(
    kinds: &EventKinds,
    timed: &TimedEvent<'_>,
    event: &Event<'_>,
    tag: u32,
) -> Option<EventContent<'e>> {
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
        Event::Usage(usage) => EventContent::Usage { name: name(), usage, details: details() },
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
