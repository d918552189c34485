//! The traced stack of a thread: applies the steps of an event to its shadow stack and to the recording.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::limits::{CountedLimits, count};
use crate::shadow::Shadow;
use crate::shadow_entry::{EntryKind, EntryStatus, INSIDE, ShadowEntry};
use crate::sink::{Sink, TraceEvent};

/// Writes events to a sink, within the limits of the trace.
#[derive(Debug)]
pub(crate) struct EventWriter<'a, S> {
    pub(crate) sink: &'a S,
    pub(crate) rules: &'a CountedLimits,
}

impl<S> Clone for EventWriter<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for EventWriter<'_, S> {}

/// A frame of the real stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RealFrame {
    pub(crate) address: u64,
    /// The number of its code object.
    pub(crate) code: u32,
    /// The bits of its call.
    pub(crate) call: u64,
    pub(crate) is_generator: bool,
}

/// The spans of a frame that is not on the stack: of a generator that has yielded, or of a greenlet that is not
/// running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SuspendedSpans {
    code: u32,
    /// The bits of their calls, outermost first.
    spans: Vec<u64>,
}

/// The traced stack of a thread.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TracedStack {
    pub(crate) shadow: Shadow,
    /// By the addresses of the frames.
    suspended: RefCell<HashMap<u64, SuspendedSpans>>,
    /// The spans that were open when the trace was paused, with their frames, outermost first.
    pub(crate) paused_spans: RefCell<Vec<(u64, u64)>>,
    /// The number of spans that have begun since then, and are open.
    pub(crate) spans_during_pause: Cell<usize>,
}

impl TracedStack {
    pub(crate) fn new() -> Self {
        Self {
            shadow: Shadow::new(),
            suspended: RefCell::default(),
            paused_spans: RefCell::default(),
            spans_during_pause: Cell::new(0),
        }
    }

    /// Begins a call, which is recorded if the limits permit.
    pub(crate) fn begin<S: Sink>(&self, writer: EventWriter<'_, S>, mut entry: ShadowEntry) {
        let limits = &writer.rules.limits;
        entry.status = if self.shadow.len() >= limits.max_depth {
            count(&writer.rules.hidden);
            EntryStatus::Hidden
        } else if writer.rules.events.get() >= limits.max_events {
            count(&writer.rules.dropped);
            EntryStatus::Hidden
        } else if limits.min_duration > 0 {
            EntryStatus::Pending
        } else {
            self.write(writer, &entry);
            EntryStatus::Written
        };
        self.shadow.push(entry);
    }

    /// Begins a call or span that is always recorded, by `record`.
    pub(crate) fn begin_recorded<S: Sink>(
        &self,
        writer: EventWriter<'_, S>,
        entry: ShadowEntry,
        record: impl FnOnce(),
    ) {
        self.write_pending(writer);
        record();
        self.shadow.push(ShadowEntry { status: EntryStatus::Written, ..entry });
    }

    fn write<S: Sink>(&self, writer: EventWriter<'_, S>, entry: &ShadowEntry) {
        self.write_pending(writer);
        record_begin(writer, entry);
    }

    /// Records the starts of all pending entries, because something in them is recorded.
    pub(crate) fn write_pending<S: Sink>(&self, writer: EventWriter<'_, S>) {
        if !self.shadow.has_pending() {
            return;
        }
        for index in 1..=self.shadow.len() {
            let entry = self.shadow.at(index);
            if entry.status == EntryStatus::Pending {
                record_begin(writer, &entry);
                count(&writer.rules.late);
                self.shadow.set_written(index);
            }
        }
    }

    /// Ends the innermost entry.
    pub(crate) fn end<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64, how: TraceEvent) {
        let top = *self.shadow.top();
        match top.status {
            EntryStatus::Written => writer.sink.record(ticks, how, &[]),
            EntryStatus::Pending if ticks.saturating_sub(top.began) >= writer.rules.limits.min_duration => {
                self.write_pending(writer);
                writer.sink.record(ticks, how, &[]);
            }
            EntryStatus::Pending => count(&writer.rules.hidden),
            EntryStatus::Hidden => {}
        }
        self.shadow.pop();
    }

    /// Records a call that is open and began before.
    pub(crate) fn open<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64, entry: ShadowEntry) {
        self.write_pending(writer);
        writer.sink.record(ticks, TraceEvent::Open, &[entry.call, self.shadow.written()]);
        self.shadow.push(ShadowEntry { status: EntryStatus::Written, ..entry });
    }

    /// Records that a span of this call is open in the innermost frame.
    fn open_span<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64, call: u64) {
        let top = *self.shadow.top();
        self.open(writer, ticks, ShadowEntry { key: top.key | INSIDE, call, kind: EntryKind::Span, ..top });
    }

    /// Ends the entries inside the one at this index. Returns the spans among them, which continue elsewhere.
    fn end_inside<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64, index: usize) -> Vec<u64> {
        let mut spans = Vec::new();
        while self.shadow.len() > index {
            let top = *self.shadow.top();
            if top.is_span() && top.is_written() {
                spans.push(top.call);
            } else if top.is_frame() && !top.may_end_unseen() {
                count(&writer.rules.repairs);
            }
            self.end(writer, ticks, TraceEvent::Return);
        }
        spans.reverse();
        spans
    }

    /// Ends the frame at this index.
    pub(crate) fn leave<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64, index: usize, how: TraceEvent) {
        let spans = self.end_inside(writer, ticks, index);
        let entry = *self.shadow.top();
        self.end(writer, ticks, how);
        if spans.is_empty() {
            return;
        }
        if how == TraceEvent::Yield {
            self.suspended.borrow_mut().insert(entry.key, SuspendedSpans { code: entry.code, spans });
        } else {
            for call in spans {
                self.open_span(writer, ticks, call);
            }
        }
    }

    /// Resumes the spans of the innermost entry, a frame that was resumed.
    pub(crate) fn resume_spans<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64) {
        let top = *self.shadow.top();
        if self.suspended.borrow().is_empty() {
            return;
        }
        let suspended = self.suspended.borrow_mut().remove(&top.key);
        for call in
            suspended.filter(|suspended| suspended.code == top.code).map_or(Vec::new(), |suspended| suspended.spans)
        {
            self.open_span(writer, ticks, call);
        }
    }

    /// Returns whether frames with spans are suspended.
    pub(crate) fn has_suspended_spans(&self) -> bool {
        !self.suspended.borrow().is_empty()
    }

    /// Drops the spans of an earlier frame at this address, where a new one begins.
    pub(crate) fn drop_spans_of(&self, address: u64) {
        if !self.suspended.borrow().is_empty() {
            self.suspended.borrow_mut().remove(&address);
        }
    }

    /// Ends the innermost span, wherever it is. Returns whether there was one.
    pub(crate) fn end_span<S: Sink>(
        &self,
        writer: EventWriter<'_, S>,
        ticks: u64,
        kind: EntryKind,
        end: impl FnOnce(),
    ) -> bool {
        let Some(index) = self.shadow.find_last(|entry| entry.kind == kind) else { return false };
        let mut around = Vec::new();
        while self.shadow.len() > index {
            let top = *self.shadow.top();
            // A native function has ended if a span ends that began before it, because native code ends no spans of its
            // callers.
            if top.kind != EntryKind::Native {
                around.push(top);
            }
            self.end(writer, ticks, TraceEvent::Return);
        }
        if self.shadow.top().is_written() {
            end();
        }
        self.shadow.pop();
        while let Some(entry) = around.pop() {
            self.reopen(writer, ticks, entry);
        }
        true
    }

    /// Reopens an entry that was ended so that another could end.
    fn reopen<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64, entry: ShadowEntry) {
        if entry.is_written() {
            self.open(writer, ticks, entry);
        } else {
            self.shadow.push(entry);
        }
    }

    /// Makes the shadow stack equal to the real one, whose frames come outermost first. Returns whether events were
    /// missing. Generators and coroutines are not counted as missing, because an exception that is thrown into one
    /// bypasses those that await it without an event.
    pub(crate) fn align<S: Sink>(
        &self,
        writer: EventWriter<'_, S>,
        ticks: u64,
        real: impl Iterator<Item = RealFrame>,
    ) -> bool {
        let mut real = real.peekable();
        let mut index = 0;
        while index < self.shadow.len() {
            let entry = self.shadow.at(index + 1);
            if entry.is_frame() && real.next_if(|seen| seen.address == entry.key && seen.code == entry.code).is_none() {
                break;
            }
            index += 1;
        }
        // An entry that was open before the trace may end without an event.
        let is_late = |index| {
            let entry = self.shadow.at(index);
            entry.is_frame() && !entry.may_end_unseen()
        };
        let mut is_changed = (index + 1..=self.shadow.len()).any(is_late);
        self.end_down_to(writer, ticks, index);
        for seen in real {
            is_changed |= !seen.is_generator;
            self.open_frame(writer, ticks, seen);
        }
        is_changed
    }

    /// Ends all entries inside the one at this index. Their spans resume with their frames.
    fn end_down_to<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64, index: usize) {
        while self.shadow.len() > index {
            let top = *self.shadow.top();
            self.end(writer, ticks, TraceEvent::Return);
            if top.is_span() && top.is_written() {
                let mut all = self.suspended.borrow_mut();
                let suspended = all.entry(top.frame()).or_default();
                if suspended.code != top.code {
                    *suspended = SuspendedSpans { code: top.code, spans: Vec::new() };
                }
                suspended.spans.insert(0, top.call);
            }
        }
    }

    /// Ends everything for a pause: spans stay open, and resume after it.
    pub(crate) fn pause<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64) {
        let mut paused = Vec::new();
        while self.shadow.len() > 0 {
            let top = *self.shadow.top();
            if top.is_span() {
                paused.push((top.frame(), top.call));
            }
            self.end(writer, ticks, TraceEvent::Return);
        }
        paused.reverse();
        self.paused_spans.replace(paused);
        self.shadow.clear();
    }

    /// Follows the thread: its frames come outermost first, and are recorded or not. Spans that were open before a
    /// pause resume.
    pub(crate) fn follow<S: Sink>(
        &self,
        writer: EventWriter<'_, S>,
        ticks: u64,
        real: impl Iterator<Item = RealFrame>,
        shows: bool,
    ) {
        self.shadow.follow();
        let mut paused = self.paused_spans.take();
        for seen in real {
            if shows {
                self.open_frame(writer, ticks, seen);
            } else {
                self.shadow.push(ShadowEntry { status: EntryStatus::Hidden, ..entry_of(seen, ticks) });
            }
            while paused.first().is_some_and(|(frame, _)| *frame == seen.address) {
                self.open_span(writer, ticks, paused.remove(0).1);
            }
        }
        for (_, call) in paused {
            self.open_span(writer, ticks, call);
        }
        for _ in 0..self.spans_during_pause.take() {
            let top = *self.shadow.top();
            self.shadow.push(ShadowEntry {
                key: top.key | INSIDE,
                kind: EntryKind::Span,
                status: EntryStatus::Hidden,
                ..top
            });
        }
    }

    fn open_frame<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64, seen: RealFrame) {
        self.open(writer, ticks, entry_of(seen, ticks));
        self.resume_spans(writer, ticks);
    }

    /// Records again what is open, in a recording that begins now.
    pub(crate) fn record_open_again<S: Sink>(&self, writer: EventWriter<'_, S>, ticks: u64) {
        let entries: Vec<ShadowEntry> = (1..=self.shadow.len()).map(|index| self.shadow.at(index)).collect();
        if !self.shadow.is_followed() {
            return;
        }
        self.shadow.follow();
        for entry in entries {
            self.reopen(writer, ticks, ShadowEntry { began: ticks, ..entry });
        }
    }

    /// Clears the stack and all spans.
    pub(crate) fn forget(&self) {
        self.shadow.resume();
        self.shadow.clear();
        self.suspended.borrow_mut().clear();
        self.paused_spans.borrow_mut().clear();
        self.spans_during_pause.set(0);
    }
}

fn record_begin<S: Sink>(writer: EventWriter<'_, S>, entry: &ShadowEntry) {
    count(&writer.rules.events);
    let (call, ticks) = (entry.call, entry.began);
    match entry.kind {
        EntryKind::Generator => writer.sink.record(ticks, TraceEvent::Generator, &[call, entry.key]),
        EntryKind::Resumed => writer.sink.record(ticks, TraceEvent::Resume, &[call, entry.key]),
        EntryKind::Native => writer.sink.record(ticks, TraceEvent::NativeCall, &[call]),
        EntryKind::Call | EntryKind::Earlier | EntryKind::Span | EntryKind::Collection => {
            writer.sink.record(ticks, TraceEvent::Call, &[call]);
        }
    }
}

fn entry_of(seen: RealFrame, began: u64) -> ShadowEntry {
    let kind = if seen.is_generator { EntryKind::Resumed } else { EntryKind::Earlier };
    let (key, call, code) = (seen.address, seen.call, seen.code);
    ShadowEntry { key, call, code, kind, status: EntryStatus::Written, began, callee_ticks: 0 }
}
