//! What a thread does, told to its shadow stack and to a recording: this file says how, the callers say when.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::entry::{Entry, Form, INSIDE, Status};
use crate::rules::{Rules, count};
use crate::shadow::Shadow;
use crate::sink::{Sink, What};

/// Writes by rules.
#[derive(Debug)]
pub(crate) struct Pen<'a, S> {
    pub(crate) sink: &'a S,
    pub(crate) rules: &'a Rules,
}

impl<S> Clone for Pen<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Pen<'_, S> {}

/// A frame as a walk sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) address: u64,
    /// Its code object's number.
    pub(crate) code: u32,
    /// The bits of the call that it is.
    pub(crate) call: u64,
    pub(crate) is_generator: bool,
}

/// The spans of a frame that is away: of a generator that has yielded, of a greenlet that another runs in place of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Away {
    code: u32,
    /// The bits of their calls, outermost first.
    spans: Vec<u64>,
}

/// What is known of a thread.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Thread {
    pub(crate) shadow: Shadow,
    /// By the addresses of frames.
    away: RefCell<HashMap<u64, Away>>,
    /// What was open when the trace was paused: spans with their frames, outermost first.
    pub(crate) kept: RefCell<Vec<(u64, u64)>>,
    /// Spans that began since then, and are open.
    pub(crate) unrecorded: Cell<usize>,
}

impl Thread {
    pub(crate) fn new() -> Self {
        Self { shadow: Shadow::new(), away: RefCell::default(), kept: RefCell::default(), unrecorded: Cell::new(0) }
    }

    /// Something begins, by the rules.
    pub(crate) fn begin<S: Sink>(&self, pen: Pen<'_, S>, mut entry: Entry) {
        let limits = &pen.rules.limits;
        entry.status = if self.shadow.len() >= limits.max_depth {
            count(&pen.rules.hidden);
            Status::Hidden
        } else if pen.rules.events.get() >= limits.max_events {
            count(&pen.rules.dropped);
            Status::Hidden
        } else if limits.min_duration > 0 {
            Status::Pending
        } else {
            self.write(pen, &entry);
            Status::Written
        };
        self.shadow.push(entry);
    }

    /// Something begins that is recorded in any case, by `record`.
    pub(crate) fn begin_by<S: Sink>(&self, pen: Pen<'_, S>, entry: Entry, record: impl FnOnce()) {
        self.write_pending(pen);
        record();
        self.shadow.push(Entry { status: Status::Written, ..entry });
    }

    fn write<S: Sink>(&self, pen: Pen<'_, S>, entry: &Entry) {
        self.write_pending(pen);
        record_begin(pen, entry);
    }

    /// Writes what was waiting for something in it to be written.
    pub(crate) fn write_pending<S: Sink>(&self, pen: Pen<'_, S>) {
        if !self.shadow.has_pending() {
            return;
        }
        for place in 1..=self.shadow.len() {
            let entry = self.shadow.at(place);
            if entry.status == Status::Pending {
                record_begin(pen, &entry);
                count(&pen.rules.late);
                self.shadow.set_written(place);
            }
        }
    }

    /// The innermost entry ends.
    pub(crate) fn end<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, how: What) {
        let top = *self.shadow.top();
        match top.status {
            Status::Written => pen.sink.record(ticks, how, &[]),
            Status::Pending if ticks.saturating_sub(top.began) >= pen.rules.limits.min_duration => {
                self.write_pending(pen);
                pen.sink.record(ticks, how, &[]);
            }
            Status::Pending => count(&pen.rules.hidden),
            Status::Hidden => {}
        }
        self.shadow.pop();
    }

    /// Something is open that began before.
    pub(crate) fn open<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, entry: Entry) {
        self.write_pending(pen);
        pen.sink.record(ticks, What::Open, &[entry.call, self.shadow.written()]);
        self.shadow.push(Entry { status: Status::Written, ..entry });
    }

    /// A span of this call is open, in the innermost frame.
    fn open_span<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, call: u64) {
        let top = *self.shadow.top();
        self.open(pen, ticks, Entry { key: top.key | INSIDE, call, form: Form::Span, ..top });
    }

    /// Ends what is open inside the entry at this place. Gives the spans among it that go on elsewhere.
    fn end_inside<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, place: usize) -> Vec<u64> {
        let mut spans = Vec::new();
        while self.shadow.len() > place {
            let top = *self.shadow.top();
            if top.is_span() && top.is_written() {
                spans.push(top.call);
            } else if top.is_frame() && !top.may_end_unseen() {
                count(&pen.rules.repairs);
            }
            self.end(pen, ticks, What::Return);
        }
        spans.reverse();
        spans
    }

    /// A frame ends that the stack knows, at this place.
    pub(crate) fn leave<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, place: usize, how: What) {
        let spans = self.end_inside(pen, ticks, place);
        let entry = *self.shadow.top();
        self.end(pen, ticks, how);
        if spans.is_empty() {
            return;
        }
        if how == What::Yield {
            self.away.borrow_mut().insert(entry.key, Away { code: entry.code, spans });
        } else {
            for call in spans {
                self.open_span(pen, ticks, call);
            }
        }
    }

    /// The frame that is the innermost entry goes on: so do the spans that it had.
    pub(crate) fn return_spans<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64) {
        let top = *self.shadow.top();
        if self.away.borrow().is_empty() {
            return;
        }
        let away = self.away.borrow_mut().remove(&top.key);
        for call in away.filter(|away| away.code == top.code).map_or(Vec::new(), |away| away.spans) {
            self.open_span(pen, ticks, call);
        }
    }

    /// Whether frames are away that had spans.
    pub(crate) fn has_away(&self) -> bool {
        !self.away.borrow().is_empty()
    }

    /// A frame begins at this address: what was there before is gone.
    pub(crate) fn forget_spans_of(&self, address: u64) {
        if !self.away.borrow().is_empty() {
            self.away.borrow_mut().remove(&address);
        }
    }

    /// A span of the program's ends: the innermost one, wherever it is. Says whether there was one.
    pub(crate) fn end_span<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, form: Form, end: impl FnOnce()) -> bool {
        let Some(place) = self.shadow.find_last(|entry| entry.form == form) else { return false };
        let mut around = Vec::new();
        while self.shadow.len() > place {
            let top = *self.shadow.top();
            // A native function is over if a span ends that began before it: nothing native ends spans of others.
            if top.form != Form::Native {
                around.push(top);
            }
            self.end(pen, ticks, What::Return);
        }
        if self.shadow.top().is_written() {
            end();
        }
        self.shadow.pop();
        while let Some(entry) = around.pop() {
            self.go_on(pen, ticks, entry);
        }
        true
    }

    /// Opens again what was ended for something else to end.
    fn go_on<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, entry: Entry) {
        if entry.is_written() {
            self.open(pen, ticks, entry);
        } else {
            self.shadow.push(entry);
        }
    }

    /// Makes the shadow stack equal the real one, whose frames come outermost first. Says whether something was wrong: that
    /// generators and coroutines are on the stack, or are not any more, is not, since an exception that is thrown into one
    /// passes by those that await it without a word.
    pub(crate) fn align<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, real: impl Iterator<Item = Seen>) -> bool {
        let mut real = real.peekable();
        let mut place = 0;
        while place < self.shadow.len() {
            let entry = self.shadow.at(place + 1);
            if entry.is_frame() && real.next_if(|seen| seen.address == entry.key && seen.code == entry.code).is_none() {
                break;
            }
            place += 1;
        }
        // What was open before is not always told to end.
        let is_late = |place| {
            let entry = self.shadow.at(place);
            entry.is_frame() && !entry.may_end_unseen()
        };
        let mut is_changed = (place + 1..=self.shadow.len()).any(is_late);
        self.put_away(pen, ticks, place);
        for seen in real {
            is_changed |= !seen.is_generator;
            self.open_frame(pen, ticks, seen);
        }
        is_changed
    }

    /// Ends all entries inside the one at this place. Their spans go on if their frames do.
    fn put_away<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, place: usize) {
        while self.shadow.len() > place {
            let top = *self.shadow.top();
            self.end(pen, ticks, What::Return);
            if top.is_span() && top.is_written() {
                let mut all = self.away.borrow_mut();
                let away = all.entry(top.frame()).or_default();
                if away.code != top.code {
                    *away = Away { code: top.code, spans: Vec::new() };
                }
                away.spans.insert(0, top.call);
            }
        }
    }

    /// Ends everything, for a pause: spans are open still, and go on after it.
    pub(crate) fn pause<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64) {
        let mut kept = Vec::new();
        while self.shadow.len() > 0 {
            let top = *self.shadow.top();
            if top.is_span() {
                kept.push((top.frame(), top.call));
            }
            self.end(pen, ticks, What::Return);
        }
        kept.reverse();
        self.kept.replace(kept);
        self.shadow.forget();
    }

    /// Follows the thread: its frames come outermost first, and are shown or not. Spans that were open before a pause go
    /// on.
    pub(crate) fn follow<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, real: impl Iterator<Item = Seen>, shows: bool) {
        self.shadow.follow();
        let mut kept = self.kept.take();
        for seen in real {
            if shows {
                self.open_frame(pen, ticks, seen);
            } else {
                self.shadow.push(Entry { status: Status::Hidden, ..entry_of(seen, ticks) });
            }
            while kept.first().is_some_and(|(frame, _)| *frame == seen.address) {
                self.open_span(pen, ticks, kept.remove(0).1);
            }
        }
        for (_, call) in kept {
            self.open_span(pen, ticks, call);
        }
        for _ in 0..self.unrecorded.take() {
            let top = *self.shadow.top();
            self.shadow.push(Entry { key: top.key | INSIDE, form: Form::Span, status: Status::Hidden, ..top });
        }
    }

    fn open_frame<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64, seen: Seen) {
        self.open(pen, ticks, entry_of(seen, ticks));
        self.return_spans(pen, ticks);
    }

    /// Says again what is open, in a recording that begins now.
    pub(crate) fn say_again<S: Sink>(&self, pen: Pen<'_, S>, ticks: u64) {
        let entries: Vec<Entry> = (1..=self.shadow.len()).map(|place| self.shadow.at(place)).collect();
        if !self.shadow.is_followed() {
            return;
        }
        self.shadow.follow();
        for entry in entries {
            self.go_on(pen, ticks, Entry { began: ticks, ..entry });
        }
    }

    /// Forgets everything.
    pub(crate) fn forget(&self) {
        self.shadow.wake();
        self.shadow.forget();
        self.away.borrow_mut().clear();
        self.kept.borrow_mut().clear();
        self.unrecorded.set(0);
    }
}

fn record_begin<S: Sink>(pen: Pen<'_, S>, entry: &Entry) {
    count(&pen.rules.events);
    let (call, ticks) = (entry.call, entry.began);
    match entry.form {
        Form::Generator => pen.sink.record(ticks, What::Generator, &[call, entry.key]),
        Form::Resumed => pen.sink.record(ticks, What::Resume, &[call, entry.key]),
        Form::Native => pen.sink.record(ticks, What::NativeCall, &[call]),
        Form::Call | Form::Earlier | Form::Span | Form::Collection => pen.sink.record(ticks, What::Call, &[call]),
    }
}

fn entry_of(seen: Seen, began: u64) -> Entry {
    let form = if seen.is_generator { Form::Resumed } else { Form::Earlier };
    let (key, call, code) = (seen.address, seen.call, seen.code);
    Entry { key, call, code, form, status: Status::Written, began, inside: 0 }
}
