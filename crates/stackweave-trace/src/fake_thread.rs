//! A fake interpreter thread for tests: its frames, its functions, and what is recorded of it.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use stackweave_core::{Call, RawFrameKind};
use stackweave_cpython::calls::{CallFrame, Entering, Leaving, Verdict};

use crate::code_states::{CallTiming, CodeState, CodeStates, DescribedCode};
use crate::engine::{CallEngine, CodeLibrary};
use crate::limits::{CountedLimits, TraceLimits};
use crate::shadow_entry::EntryKind;
use crate::sink::{Sink, TraceEvent};
use crate::thread_stack::{EventWriter, TracedStack};

#[derive(Clone, Copy, Debug)]
struct FrameData {
    address: u64,
    code: u32,
    unit: u32,
    caller: Option<FakeFrame>,
}

thread_local! {
    static FRAMES: RefCell<Vec<FrameData>> = const { RefCell::new(Vec::new()) };
}

/// A frame: its index among all that were ever created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FakeFrame(usize);

impl FakeFrame {
    pub(crate) fn new(address: u64, code: u32) -> Self {
        FRAMES.with_borrow_mut(|frames| {
            frames.push(FrameData { address, code, unit: 0, caller: None });
            Self(frames.len() - 1)
        })
    }

    /// Sets the caller.
    pub(crate) fn called_by(self, caller: Option<Self>) -> Self {
        FRAMES.with_borrow_mut(|frames| frames[self.0].caller = caller);
        self
    }

    pub(crate) fn number(self) -> u32 {
        self.data().code
    }

    fn data(self) -> FrameData {
        FRAMES.with_borrow(|frames| frames[self.0])
    }
}

impl CallFrame for FakeFrame {
    fn address(self) -> u64 {
        self.data().address
    }

    fn code(self) -> u64 {
        self.data().code.into()
    }

    fn caller(self) -> Option<Self> {
        self.data().caller
    }

    fn unit(self) -> u32 {
        self.data().unit
    }

    fn locals(self) -> u64 {
        0
    }
}

/// A recorded event: the time, the kind, and the words.
pub(crate) type FakeEvent = (u64, TraceEvent, Vec<u64>);

#[derive(Debug, Default)]
pub(crate) struct RecordedEvents {
    clock: Cell<u64>,
    pub(crate) events: RefCell<Vec<FakeEvent>>,
}

impl RecordedEvents {
    /// Advances the clock.
    pub(crate) fn pass(&self, ticks: u64) {
        self.clock.set(self.clock.get() + ticks);
    }
}

impl Sink for RecordedEvents {
    fn now(&self) -> u64 {
        self.pass(1);
        self.clock.get()
    }

    fn record(&self, ticks: u64, what: TraceEvent, words: &[u64]) {
        self.events.borrow_mut().push((ticks, what, words.to_vec()));
    }
}

/// Functions by number: generators from 100 on, excluded ones from 200 on, described ones from 300 on.
#[derive(Debug, Default)]
pub(crate) struct FakeFunctions {
    codes: RefCell<Option<*const CodeStates>>,
    pub(crate) demotes: HashSet<u32>,
    pub(crate) described: RefCell<Vec<u32>>,
    pub(crate) judged: RefCell<Vec<(u32, u64)>>,
}

pub(crate) const GENERATORS: u32 = 100;
pub(crate) const EXCLUDED: u32 = 200;
pub(crate) const DESCRIBED: u32 = 300;

impl FakeFunctions {
    fn codes(&self) -> &CodeStates {
        // SAFETY: set by the thread that owns both.
        unsafe { &*self.codes.borrow().unwrap() }
    }
}

impl CodeLibrary for FakeFunctions {
    fn number(&self, code: u64) -> Option<u32> {
        u32::try_from(code).ok()
    }

    fn decide<F: CallFrame>(&self, number: u32, _: F) -> CodeState {
        match number {
            DESCRIBED.. => {
                let described = DescribedCode { matched: 1, native: false, otherwise: CodeState::Plain };
                self.codes().describe(number, described)
            }
            EXCLUDED.. => self.codes().set_state(number, CodeState::Excluded),
            GENERATORS.. => self.codes().set_state(number, CodeState::Generator),
            _ => self.codes().set_state(number, CodeState::Plain),
        }
    }

    fn describe<F: CallFrame>(&self, number: u32, _: F) -> bool {
        self.described.borrow_mut().push(number);
        false
    }

    fn judged_after(&self) -> Option<u32> {
        Some(3)
    }

    fn judge(&self, number: u32, timing: CallTiming) {
        assert_eq!(timing.calls, 3);
        self.judged.borrow_mut().push((number, timing.ticks));
        if self.demotes.contains(&number) {
            self.codes().demote(number, 0);
        }
    }
}

/// A thread, and what is recorded of it.
pub(crate) struct FakeThread {
    pub(crate) stack: TracedStack,
    pub(crate) codes: Box<CodeStates>,
    pub(crate) recorded: RecordedEvents,
    pub(crate) rules: CountedLimits,
    pub(crate) functions: FakeFunctions,
    known_path: Cell<(u64, u64)>,
    pub(crate) since: Cell<u64>,
    /// Whether frames that were open at the start are recorded.
    pub(crate) shows_outer: Cell<bool>,
}

impl FakeThread {
    pub(crate) fn new(limits: TraceLimits) -> Self {
        let codes = Box::new(CodeStates::new());
        let functions = FakeFunctions { codes: RefCell::new(Some(&raw const *codes)), ..FakeFunctions::default() };
        Self {
            stack: TracedStack::new(),
            codes,
            recorded: RecordedEvents::default(),
            rules: CountedLimits::new(limits),
            functions,
            known_path: Cell::new((0, 0)),
            since: Cell::new(0),
            shows_outer: Cell::new(true),
        }
    }

    pub(crate) fn writer(&self) -> EventWriter<'_, RecordedEvents> {
        EventWriter { sink: &self.recorded, rules: &self.rules }
    }

    pub(crate) fn engine(&self) -> CallEngine<'_, RecordedEvents, FakeFunctions> {
        CallEngine {
            stack: &self.stack,
            writer: self.writer(),
            codes: &self.codes,
            library: &self.functions,
            known_path: &self.known_path,
            since: self.since.get(),
            shows_outer: self.shows_outer.get(),
        }
    }

    pub(crate) fn enter(&self, entering: Entering, frame: FakeFrame) -> Verdict {
        self.engine().enter(entering, frame)
    }

    pub(crate) fn leave(&self, leaving: Leaving, frame: FakeFrame) -> Verdict {
        self.engine().leave(leaving, frame)
    }

    pub(crate) fn events(&self) -> Vec<TraceEvent> {
        self.recorded.events.borrow().iter().map(|event| event.1).collect()
    }

    pub(crate) fn replay(&self) -> ReplayedEvents {
        let mut replayed = ReplayedEvents::default();
        for event in &*self.recorded.events.borrow() {
            replayed.take(event);
        }
        replayed
    }
}

/// The open calls that a reader derives from the events; checks that the events are valid.
#[derive(Debug, Default)]
pub(crate) struct ReplayedEvents {
    /// The words of the open calls.
    pub(crate) open: Vec<u64>,
    /// The calls that were counted, by their functions' numbers.
    pub(crate) counted: Vec<u32>,
    last: u64,
}

impl ReplayedEvents {
    pub(crate) fn take(&mut self, event: &FakeEvent) {
        let (ticks, what, words) = event;
        assert!(*ticks >= self.last || self.last == 0, "time goes back: {event:?}");
        self.last = *ticks;
        match what {
            TraceEvent::Call | TraceEvent::NativeCall | TraceEvent::Generator | TraceEvent::Resume => {
                self.open.push(words[0]);
                self.counted.extend(function_of(words[0]));
            }
            TraceEvent::Collection => self.open.push(words[0]),
            TraceEvent::Open => {
                assert_eq!(words[1], self.open.len() as u64, "open at another depth: {event:?}");
                self.open.push(words[0]);
            }
            TraceEvent::Return | TraceEvent::Yield | TraceEvent::Raise | TraceEvent::CollectionEnd => {
                assert!(self.open.pop().is_some(), "nothing is open: {event:?}");
            }
            TraceEvent::Name | TraceEvent::Demoted | TraceEvent::Note => {}
        }
    }

    /// Returns the functions that are open, outermost first, without spans and native functions.
    pub(crate) fn functions(&self) -> Vec<u32> {
        self.open.iter().filter_map(|call| function_of(*call)).collect()
    }
}

fn function_of(call: u64) -> Option<u32> {
    match Call::from_bits(call)?.callee().kind() {
        RawFrameKind::Python { code, .. } => Some(code.get()),
        _ => None,
    }
}

/// Returns the call of a span or a native function with this number.
pub(crate) fn label_call(number: u32) -> Call {
    Call::to_label(stackweave_core::BlobId::new(number).unwrap()).unwrap()
}

impl FakeThread {
    /// Begins a span in the innermost frame.
    pub(crate) fn begin_span(&self, number: u32) {
        let top = *self.stack.shadow.top();
        let call = label_call(number).to_bits();
        let entry = crate::shadow_entry::ShadowEntry { key: top.key | 1, call, kind: EntryKind::Span, ..top };
        let ticks = self.recorded.now();
        let record = || self.recorded.record(ticks, TraceEvent::Call, &[call]);
        self.stack.begin_recorded(self.writer(), entry, record);
    }

    /// Ends the span that began last.
    pub(crate) fn end_span(&self) -> bool {
        let ticks = self.recorded.now();
        let record = || self.recorded.record(ticks, TraceEvent::Return, &[]);
        self.stack.end_span(self.writer(), ticks, EntryKind::Span, record)
    }
}
