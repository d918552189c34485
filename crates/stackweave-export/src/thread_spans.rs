//! What one thread began and ended, cut to the time that is asked for: as profiles count it, but in the order of time.

use std::ops::Range;

use stackweave_profile::{Kinds, Seen};
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::Lost;

use crate::error::ExportError;
use crate::source::Source;

/// What happens next on a thread. Times are nanoseconds since the first process began to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// A span begins, inside those that are open.
    Open { frame: u32, time_ns: u64 },
    /// The span that was opened last ends.
    Close { time_ns: u64 },
    /// A stack was seen.
    Sample { place: Place<'a>, weight: i64 },
    /// Memory was taken.
    Allocate { place: Place<'a>, size: u64 },
}

/// Where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// On this stack of the recording.
    Stack(u32),
    /// In these spans, outermost first.
    Spans(&'a [u32]),
}

/// Shows what happened on a thread. Every span that is opened is closed too.
pub(crate) fn visit_spans(
    source: &Source<'_>,
    process: &ProcessRecording,
    thread: u32,
    step: &mut dyn FnMut(Step<'_>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let (range, later) = source.local_range(process);
    let kinds = Kinds::of(process.dictionary());
    let mut spans = Spans { range: range.clone(), later, now: 0, frames: Vec::new(), told: 0, step };
    let mut losses = losses(process, thread);
    source.visit_thread(process, thread, &mut |event| {
        while losses.last().is_some_and(|lost| event.ticks > *lost) {
            spans.cut(spans.now)?;
            losses.pop();
        }
        let time = process.timeline().nanoseconds(event.ticks);
        let is_inside = range.contains(&time);
        spans.now = spans.now.max(time);
        match kinds.see(event) {
            Seen::Begin { frame } => spans.begin(frame),
            Seen::End => spans.end(spans.now),
            Seen::Sample { stack, weight } if is_inside => spans.sample(stack, weight),
            Seen::Allocate { stack, size, .. } if is_inside => spans.allocate(stack, size),
            Seen::Sample { .. } | Seen::Allocate { .. } | Seen::Free { .. } | Seen::Nothing => Ok(()),
        }
    })?;
    let last = process.last_ticks(thread).map_or(0, |ticks| process.timeline().nanoseconds(ticks));
    spans.cut(if last >= range.end { range.end } else { spans.now })
}

struct Spans<'s> {
    range: Range<u64>,
    later: u64,
    /// The time of the last event: never earlier than of one before it.
    now: u64,
    /// What is open, outermost first.
    frames: Vec<u32>,
    /// How many of them were told. The others began before the range.
    told: usize,
    step: &'s mut dyn FnMut(Step<'_>) -> Result<(), ExportError>,
}

impl Spans<'_> {
    fn begin(&mut self, frame: u32) -> Result<(), ExportError> {
        if self.now < self.range.start {
            self.frames.push(frame);
            return Ok(());
        }
        self.tell_all()?;
        self.frames.push(frame);
        self.told += 1;
        (self.step)(Step::Open { frame, time_ns: self.now + self.later })
    }

    fn end(&mut self, time: u64) -> Result<(), ExportError> {
        if self.frames.is_empty() {
            return Ok(());
        }
        if time > self.range.start {
            self.tell_all()?;
        }
        self.frames.pop();
        if self.told > self.frames.len() {
            self.told -= 1;
            (self.step)(Step::Close { time_ns: time.min(self.range.end) + self.later })?;
        }
        Ok(())
    }

    /// Ends all that is open.
    fn cut(&mut self, time: u64) -> Result<(), ExportError> {
        while !self.frames.is_empty() {
            self.end(time)?;
        }
        Ok(())
    }

    /// Opens what reaches into the range from before it.
    fn tell_all(&mut self) -> Result<(), ExportError> {
        for &frame in &self.frames[self.told..] {
            (self.step)(Step::Open { frame, time_ns: self.range.start + self.later })?;
        }
        self.told = self.frames.len();
        Ok(())
    }

    fn sample(&mut self, stack: u32, weight: i64) -> Result<(), ExportError> {
        (self.step)(Step::Sample { place: place(stack, &self.frames), weight })
    }

    fn allocate(&mut self, stack: u32, size: u64) -> Result<(), ExportError> {
        (self.step)(Step::Allocate { place: place(stack, &self.frames), size })
    }
}

fn place(stack: u32, spans: &[u32]) -> Place<'_> {
    if stack == 0 { Place::Spans(spans) } else { Place::Stack(stack) }
}

/// Where events of a thread are missing, in ticks, the last place first.
pub(crate) fn losses(process: &ProcessRecording, thread: u32) -> Vec<u64> {
    let at = |lost: &Lost| if lost.first_ticks == 0 { lost.last_ticks } else { lost.first_ticks };
    let mut losses: Vec<u64> = process.losses().iter().filter(|lost| lost.thread == thread).map(at).collect();
    losses.sort_unstable_by_key(|ticks| core::cmp::Reverse(*ticks));
    losses
}
