//! Applies an event to a thread's shadow stack and to the recording, in all cases. `observer.rs` has faster code for
//! the common ones.

use std::cell::Cell;

use stackweave_core::{Call, CodeId};
use stackweave_cpython::calls::{CallFrame, Entering, Leaving, Verdict};

use crate::code_states::{CallTiming, CodeState, CodeStates};
use crate::limits::count;
use crate::shadow_entry::{EntryKind, EntryStatus, INSIDE, ShadowEntry};
use crate::sink::{Sink, TraceEvent};
use crate::thread_stack::{EventWriter, RealFrame, TracedStack};

/// Knows code objects.
pub(crate) trait CodeLibrary {
    /// Returns the number of the code object at this address, which is alive; `None` if there is no memory.
    fn number(&self, code: u64) -> Option<u32>;

    /// Decides what is done with its calls, by its first frame.
    fn decide<F: CallFrame>(&self, number: u32, frame: F) -> CodeState;

    /// Describes a call that begins, and records it. Returns false if it is to be recorded as any other call.
    fn describe<F: CallFrame>(&self, number: u32, frame: F) -> bool;

    /// Returns after how many calls [`CodeLibrary::judge`] is called; `None`: never.
    fn judged_after(&self) -> Option<u32>;

    /// Decides whether a function is demoted, from this number of calls and their self time.
    fn judge(&self, number: u32, timing: CallTiming);
}

/// The state of a thread in the middle of an event.
#[derive(Debug)]
pub(crate) struct CallEngine<'a, S, L> {
    pub(crate) stack: &'a TracedStack,
    pub(crate) writer: EventWriter<'a, S>,
    pub(crate) codes: &'a CodeStates,
    pub(crate) library: &'a L,
    /// The result of the last walk to the nearest recorded frame: the caller of some function, and that frame.
    pub(crate) known_path: &'a Cell<(u64, u64)>,
    /// The time from which on the calls are recorded that are open at the first event.
    pub(crate) since: u64,
    /// Whether these are recorded.
    pub(crate) shows_outer: bool,
}

impl<S: Sink, L: CodeLibrary> CallEngine<'_, S, L> {
    /// Returns the number of a frame's function, and its state.
    fn function<F: CallFrame>(&self, frame: F) -> (u32, CodeState) {
        let Some(number) = self.library.number(frame.code()) else { return (0, CodeState::Excluded) };
        match self.codes.state(number) {
            CodeState::Unknown => (number, self.library.decide(number, frame)),
            state => (number, state),
        }
    }

    /// Handles a frame that starts to run.
    pub(crate) fn enter<F: CallFrame>(&self, entering: Entering, frame: F) -> Verdict {
        let (number, state) = self.function(frame);
        if !state.is_recorded() {
            return Verdict::Disable;
        }
        let caller = frame.caller();
        self.align_to(caller);
        let ticks = self.writer.sink.now();
        let state = match state {
            CodeState::Described => {
                self.codes.described(number).map_or(CodeState::Plain, |described| described.otherwise)
            }
            state => state,
        };
        let is_generator = matches!(state, CodeState::Generator | CodeState::Coroutine);
        let kind = match (is_generator, entering) {
            (true, Entering::Call) => EntryKind::Generator,
            (true, _) => EntryKind::Resumed,
            (false, _) => EntryKind::Call,
        };
        let entry = ShadowEntry {
            key: frame.address(),
            call: self.call(number, caller),
            code: number,
            kind,
            status: EntryStatus::Written,
            began: ticks,
            callee_ticks: 0,
        };
        let is_described = entering == Entering::Call && self.codes.state(number) == CodeState::Described;
        if is_described && self.describe(number, frame, entry) {
            return Verdict::Record;
        }
        self.stack.begin(self.writer, entry);
        match kind {
            EntryKind::Resumed => self.stack.resume_spans(self.writer, ticks),
            _ => self.stack.drop_spans_of(frame.address()),
        }
        Verdict::Record
    }

    fn describe<F: CallFrame>(&self, number: u32, frame: F, entry: ShadowEntry) -> bool {
        self.stack.write_pending(self.writer);
        if !self.library.describe(number, frame) {
            return false;
        }
        self.stack.begin_recorded(self.writer, entry, || {});
        true
    }

    /// Handles a frame that stops running.
    pub(crate) fn leave<F: CallFrame>(&self, leaving: Leaving, frame: F) -> Verdict {
        let how = match leaving {
            Leaving::Return => TraceEvent::Return,
            Leaving::Yield => TraceEvent::Yield,
            Leaving::Raise => TraceEvent::Raise,
        };
        let mut index = self.index_of(frame);
        if index.is_none() {
            let (number, state) = self.function(frame);
            if !state.is_recorded() {
                return if self.codes.is_finished(number) { Verdict::Disable } else { Verdict::Record };
            }
            // It began before the trace, or the stack now has the frames of another greenlet.
            count(&self.writer.rules.ignored_ends);
            self.align_to(Some(frame));
            index = self.index_of(frame);
        }
        if let Some(index) = index {
            let entry = self.stack.shadow.at(index);
            let ticks = self.writer.sink.now();
            self.stack.leave(self.writer, ticks, index, how);
            self.update_timing(entry, ticks);
        }
        Verdict::Record
    }

    fn index_of<F: CallFrame>(&self, frame: F) -> Option<usize> {
        let address = frame.address();
        if self.stack.shadow.top().key == address {
            return Some(self.stack.shadow.len());
        }
        self.stack.shadow.find_last(|entry| entry.key == address)
    }

    /// Adds the self time of a call, and may demote its function.
    fn update_timing(&self, entry: ShadowEntry, ticks: u64) {
        if self.codes.state(entry.code) == CodeState::Demoted {
            return self.codes.end_demoted_call(entry.code);
        }
        let Some(calls) = self.library.judged_after() else { return };
        let took = ticks.saturating_sub(entry.began);
        if self.stack.shadow.len() > 0 {
            self.stack.shadow.add_callee_ticks(took);
        }
        if let Some(timing) = self.codes.time(entry.code, took.saturating_sub(entry.callee_ticks), calls) {
            self.library.judge(entry.code, timing);
        }
    }

    /// Handles the call of a native function by a frame.
    pub(crate) fn enter_native<F: CallFrame>(&self, call: Call, frame: F) {
        let (number, state) = self.function(frame);
        if !state.is_recorded() {
            return;
        }
        self.align_to(Some(frame));
        let call = CodeId::new(number).map_or(call, |code| call.from(code, frame.unit()));
        let entry = ShadowEntry {
            key: frame.address() | INSIDE,
            call: call.to_bits(),
            code: number,
            kind: EntryKind::Native,
            status: EntryStatus::Written,
            began: self.writer.sink.now(),
            callee_ticks: 0,
        };
        self.stack.begin(self.writer, entry);
    }

    /// Handles the end of the native function that a frame has called last.
    pub(crate) fn leave_native<F: CallFrame>(&self, raised: bool, frame: F) {
        let key = frame.address() | INSIDE;
        let how = if raised { TraceEvent::Raise } else { TraceEvent::Return };
        let wanted = |entry: &ShadowEntry| entry.kind == EntryKind::Native && entry.key == key;
        if let Some(index) = self.stack.shadow.find_last(wanted) {
            self.stack.leave(self.writer, self.writer.sink.now(), index, how);
        }
    }

    /// Makes this frame, or the nearest recorded frame around it, the innermost on the shadow stack.
    pub(crate) fn align_to<F: CallFrame>(&self, frame: Option<F>) {
        let shadow = &self.stack.shadow;
        if !shadow.is_followed() {
            let frames = self.frames_from(frame);
            self.stack.follow(self.writer, self.since, frames.into_iter().rev(), self.shows_outer);
        } else if shadow.top().frame() != frame.map_or(0, F::address) && !self.leads_to_top(frame) {
            let frames = self.frames_from(frame);
            let is_changed = self.stack.align(self.writer, self.writer.sink.now(), frames.into_iter().rev());
            if is_changed {
                count(&self.writer.rules.repairs);
            }
        }
    }

    /// Returns whether only excluded frames are between this one and the innermost on the shadow stack.
    fn leads_to_top<F: CallFrame>(&self, frame: Option<F>) -> bool {
        let top = self.stack.shadow.top().frame();
        let start = frame.map_or(0, F::address);
        if self.known_path.get() == (start, top) {
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
            self.known_path.set((start, top));
        }
        leads
    }

    /// Returns the frames from this one outward that are recorded, or on the shadow stack.
    fn frames_from<F: CallFrame>(&self, frame: Option<F>) -> Vec<RealFrame> {
        let shadow = &self.stack.shadow;
        let mut seen = Vec::new();
        let mut next = frame;
        while let Some(frame) = next {
            let (code, state) = self.function(frame);
            let caller = frame.caller();
            let address = frame.address();
            let is_shown = state.is_recorded()
                || (state == CodeState::Demoted && shadow.find_last(|entry| entry.key == address).is_some());
            if is_shown {
                let is_generator = matches!(state, CodeState::Generator | CodeState::Coroutine);
                seen.push(RealFrame { address, code, call: self.call(code, caller), is_generator });
            }
            next = caller;
        }
        seen
    }

    /// Returns the call of this function by that frame as one word.
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
