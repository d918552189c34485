//! What an event does to a thread's shadow stack and to the recording: all of it. What happens most is done again, quicker,
//! in `observer.rs`.

use std::cell::Cell;

use stackweave_core::{Call, CodeId};
use stackweave_cpython::calls::{CallFrame, Entering, Leaving, Verdict};

use crate::codes::{Codes, State, Timing};
use crate::entry::{Entry, Form, INSIDE, Status};
use crate::rules::count;
use crate::sink::{Sink, What};
use crate::thread::{Pen, Seen, Thread};

/// Knows code objects.
pub(crate) trait Library {
    /// The number of the code object at this address, which is alive; `None` without memory.
    fn number(&self, code: u64) -> Option<u32>;

    /// Decides what is done about it, by its first frame.
    fn decide<F: CallFrame>(&self, number: u32, frame: F) -> State;

    /// Says how a call begins that is to be described, and records it. False: it is a call like any other.
    fn describe<F: CallFrame>(&self, number: u32, frame: F) -> bool;

    /// After how many calls [`Library::judge`] is asked; `None`: never.
    fn judged_after(&self) -> Option<u32>;

    /// A function has been called that often, and took that long by itself.
    fn judge(&self, number: u32, timing: Timing);
}

/// A thread, in the middle of an event.
#[derive(Debug)]
pub(crate) struct Engine<'a, S, L> {
    pub(crate) thread: &'a Thread,
    pub(crate) pen: Pen<'a, S>,
    pub(crate) codes: &'a Codes,
    pub(crate) library: &'a L,
    /// Where the walk to the nearest frame that is recorded has led before: the caller of some function, and that frame.
    pub(crate) way: &'a Cell<(u64, u64)>,
    /// Since when what is open at the first event is shown.
    pub(crate) since: u64,
    /// Whether that is shown at all.
    pub(crate) shows_outer: bool,
}

impl<S: Sink, L: Library> Engine<'_, S, L> {
    /// The number of a frame's function, and what is done about it.
    fn function<F: CallFrame>(&self, frame: F) -> (u32, State) {
        let Some(number) = self.library.number(frame.code()) else { return (0, State::LeftOut) };
        match self.codes.state(number) {
            State::Unknown => (number, self.library.decide(number, frame)),
            state => (number, state),
        }
    }

    /// A frame begins to run.
    pub(crate) fn enter<F: CallFrame>(&self, entering: Entering, frame: F) -> Verdict {
        let (number, state) = self.function(frame);
        if !state.is_recorded() {
            return Verdict::Disable;
        }
        let caller = frame.caller();
        self.be_at(caller);
        let ticks = self.pen.sink.now();
        let state = match state {
            State::Described => self.codes.described(number).map_or(State::Plain, |described| described.otherwise),
            state => state,
        };
        let is_generator = matches!(state, State::Generator | State::Coroutine);
        let form = match (is_generator, entering) {
            (true, Entering::Call) => Form::Generator,
            (true, _) => Form::Resumed,
            (false, _) => Form::Call,
        };
        let entry = Entry {
            key: frame.address(),
            call: self.call(number, caller),
            code: number,
            form,
            status: Status::Written,
            began: ticks,
            inside: 0,
        };
        let is_described = entering == Entering::Call && self.codes.state(number) == State::Described;
        if is_described && self.describe(number, frame, entry) {
            return Verdict::Tell;
        }
        self.thread.begin(self.pen, entry);
        match form {
            Form::Resumed => self.thread.return_spans(self.pen, ticks),
            _ => self.thread.forget_spans_of(frame.address()),
        }
        Verdict::Tell
    }

    fn describe<F: CallFrame>(&self, number: u32, frame: F, entry: Entry) -> bool {
        self.thread.write_pending(self.pen);
        if !self.library.describe(number, frame) {
            return false;
        }
        self.thread.begin_by(self.pen, entry, || {});
        true
    }

    /// A frame is about to end.
    pub(crate) fn leave<F: CallFrame>(&self, leaving: Leaving, frame: F) -> Verdict {
        let how = match leaving {
            Leaving::Return => What::Return,
            Leaving::Yield => What::Yield,
            Leaving::Raise => What::Raise,
        };
        let mut place = self.place_of(frame);
        if place.is_none() {
            let (number, state) = self.function(frame);
            if !state.is_recorded() {
                return if self.codes.is_over(number) { Verdict::Disable } else { Verdict::Tell };
            }
            // It began before anybody looked, or another greenlet's frames are on the stack.
            count(&self.pen.rules.ignored_ends);
            self.be_at(Some(frame));
            place = self.place_of(frame);
        }
        if let Some(place) = place {
            let entry = self.thread.shadow.at(place);
            let ticks = self.pen.sink.now();
            self.thread.leave(self.pen, ticks, place, how);
            self.look_after(entry, ticks);
        }
        Verdict::Tell
    }

    fn place_of<F: CallFrame>(&self, frame: F) -> Option<usize> {
        let address = frame.address();
        if self.thread.shadow.top().key == address {
            return Some(self.thread.shadow.len());
        }
        self.thread.shadow.find_last(|entry| entry.key == address)
    }

    /// Whether functions are told of too often, or were.
    fn look_after(&self, entry: Entry, ticks: u64) {
        if self.codes.state(entry.code) == State::Demoted {
            return self.codes.one_ends(entry.code);
        }
        let Some(calls) = self.library.judged_after() else { return };
        let took = ticks.saturating_sub(entry.began);
        if self.thread.shadow.len() > 0 {
            self.thread.shadow.add_inside(took);
        }
        if let Some(timing) = self.codes.time(entry.code, took.saturating_sub(entry.inside), calls) {
            self.library.judge(entry.code, timing);
        }
    }

    /// A frame calls a native function.
    pub(crate) fn enter_native<F: CallFrame>(&self, call: Call, frame: F) {
        let (number, state) = self.function(frame);
        if !state.is_recorded() {
            return;
        }
        self.be_at(Some(frame));
        let call = CodeId::new(number).map_or(call, |code| call.from(code, frame.unit()));
        let entry = Entry {
            key: frame.address() | INSIDE,
            call: call.to_bits(),
            code: number,
            form: Form::Native,
            status: Status::Written,
            began: self.pen.sink.now(),
            inside: 0,
        };
        self.thread.begin(self.pen, entry);
    }

    /// The native function that a frame has called last is over.
    pub(crate) fn leave_native<F: CallFrame>(&self, raised: bool, frame: F) {
        let key = frame.address() | INSIDE;
        let how = if raised { What::Raise } else { What::Return };
        let wanted = |entry: &Entry| entry.form == Form::Native && entry.key == key;
        if let Some(place) = self.thread.shadow.find_last(wanted) {
            self.thread.leave(self.pen, self.pen.sink.now(), place, how);
        }
    }

    /// Sees to it that the innermost frame on the shadow stack is this one, or the nearest around it that is recorded.
    pub(crate) fn be_at<F: CallFrame>(&self, frame: Option<F>) {
        let shadow = &self.thread.shadow;
        if !shadow.is_followed() {
            let frames = self.frames_from(frame);
            self.thread.follow(self.pen, self.since, frames.into_iter().rev(), self.shows_outer);
        } else if shadow.top().frame() != frame.map_or(0, F::address) && !self.leads_to_top(frame) {
            let frames = self.frames_from(frame);
            let is_changed = self.thread.align(self.pen, self.pen.sink.now(), frames.into_iter().rev());
            if is_changed {
                count(&self.pen.rules.repairs);
            }
        }
    }

    /// Whether only frames that are left out lie between this one and the innermost on the shadow stack.
    fn leads_to_top<F: CallFrame>(&self, frame: Option<F>) -> bool {
        let top = self.thread.shadow.top().frame();
        let start = frame.map_or(0, F::address);
        if self.way.get() == (start, top) {
            return true;
        }
        let mut next = frame;
        while let Some(frame) = next {
            if frame.address() == top {
                break;
            }
            if self.function(frame).1.is_recorded() {
                return false;
            }
            next = frame.caller();
        }
        let leads = next.map_or(0, F::address) == top;
        if leads {
            self.way.set((start, top));
        }
        leads
    }

    /// The frames from this one on outward that are recorded, or on the shadow stack.
    fn frames_from<F: CallFrame>(&self, frame: Option<F>) -> Vec<Seen> {
        let shadow = &self.thread.shadow;
        let mut seen = Vec::new();
        let mut next = frame;
        while let Some(frame) = next {
            let (code, state) = self.function(frame);
            let caller = frame.caller();
            let address = frame.address();
            let is_shown = state.is_recorded()
                || (state == State::Demoted && shadow.find_last(|entry| entry.key == address).is_some());
            if is_shown {
                let is_generator = matches!(state, State::Generator | State::Coroutine);
                seen.push(Seen { address, code, call: self.call(code, caller), is_generator });
            }
            next = caller;
        }
        seen
    }

    /// A call of this function by that frame, in one word.
    fn call<F: CallFrame>(&self, number: u32, caller: Option<F>) -> u64 {
        let call = CodeId::new(number).and_then(Call::to_code);
        let by = caller.and_then(|caller| {
            let code = self.library.number(caller.code()).and_then(CodeId::new)?;
            Some((code, caller.unit()))
        });
        match (call, by) {
            (Some(call), Some((code, unit))) => call.from(code, unit).to_bits(),
            (call, _) => call.map_or(0, Call::to_bits),
        }
    }
}
