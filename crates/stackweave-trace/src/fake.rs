//! A thread of an interpreter that is not there, for tests: its frames, its functions, and what is recorded of it.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use stackweave_core::{Call, RawFrameKind};
use stackweave_cpython::calls::{CallFrame, Entering, Leaving, Verdict};

use crate::codes::{Codes, Described, State, Timing};
use crate::engine::{Engine, Library};
use crate::entry::Form;
use crate::rules::{Limits, Rules};
use crate::sink::{Sink, What};
use crate::thread::{Pen, Thread};

#[derive(Clone, Copy, Debug)]
struct FrameData {
    address: u64,
    code: u32,
    unit: u32,
    caller: Option<Frame>,
}

thread_local! {
    static FRAMES: RefCell<Vec<FrameData>> = const { RefCell::new(Vec::new()) };
}

/// A frame: its place among those that were ever made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame(usize);

impl Frame {
    pub(crate) fn new(address: u64, code: u32) -> Self {
        FRAMES.with_borrow_mut(|frames| {
            frames.push(FrameData { address, code, unit: 0, caller: None });
            Self(frames.len() - 1)
        })
    }

    /// It runs, called from there.
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

impl CallFrame for Frame {
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

/// What was recorded: the time, what, and the words.
pub(crate) type Event = (u64, What, Vec<u64>);

#[derive(Debug, Default)]
pub(crate) struct Written {
    clock: Cell<u64>,
    pub(crate) events: RefCell<Vec<Event>>,
}

impl Written {
    /// Some time passes.
    pub(crate) fn pass(&self, ticks: u64) {
        self.clock.set(self.clock.get() + ticks);
    }
}

impl Sink for Written {
    fn now(&self) -> u64 {
        self.pass(1);
        self.clock.get()
    }

    fn record(&self, ticks: u64, what: What, words: &[u64]) {
        self.events.borrow_mut().push((ticks, what, words.to_vec()));
    }
}

/// Functions by number: from 100 on generators, from 200 on left out, from 300 on described.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    codes: RefCell<Option<*const Codes>>,
    pub(crate) demotes: HashSet<u32>,
    pub(crate) asked: RefCell<Vec<u32>>,
    pub(crate) judged: RefCell<Vec<(u32, u64)>>,
}

pub(crate) const GENERATORS: u32 = 100;
pub(crate) const LEFT_OUT: u32 = 200;
pub(crate) const DESCRIBED: u32 = 300;

impl Functions {
    fn codes(&self) -> &Codes {
        // SAFETY: set by the world that holds both.
        unsafe { &*self.codes.borrow().unwrap() }
    }
}

impl Library for Functions {
    fn number(&self, code: u64) -> Option<u32> {
        u32::try_from(code).ok()
    }

    fn decide<F: CallFrame>(&self, number: u32, _: F) -> State {
        match number {
            DESCRIBED.. => {
                let described = Described { matched: 1, native: false, otherwise: State::Plain };
                self.codes().describe(number, described)
            }
            LEFT_OUT.. => self.codes().set_state(number, State::LeftOut),
            GENERATORS.. => self.codes().set_state(number, State::Generator),
            _ => self.codes().set_state(number, State::Plain),
        }
    }

    fn describe<F: CallFrame>(&self, number: u32, _: F) -> bool {
        self.asked.borrow_mut().push(number);
        false
    }

    fn judged_after(&self) -> Option<u32> {
        Some(3)
    }

    fn judge(&self, number: u32, timing: Timing) {
        assert_eq!(timing.calls, 3);
        self.judged.borrow_mut().push((number, timing.ticks));
        if self.demotes.contains(&number) {
            self.codes().demote(number, 0);
        }
    }
}

/// A thread, and what is recorded of it.
pub(crate) struct World {
    pub(crate) thread: Thread,
    pub(crate) codes: Box<Codes>,
    pub(crate) written: Written,
    pub(crate) rules: Rules,
    pub(crate) functions: Functions,
    way: Cell<(u64, u64)>,
    pub(crate) since: Cell<u64>,
    /// Whether frames around the start are shown.
    pub(crate) shows_outer: Cell<bool>,
}

impl World {
    pub(crate) fn new(limits: Limits) -> Self {
        let codes = Box::new(Codes::new());
        let functions = Functions { codes: RefCell::new(Some(&raw const *codes)), ..Functions::default() };
        Self {
            thread: Thread::new(),
            codes,
            written: Written::default(),
            rules: Rules::new(limits),
            functions,
            way: Cell::new((0, 0)),
            since: Cell::new(0),
            shows_outer: Cell::new(true),
        }
    }

    pub(crate) fn pen(&self) -> Pen<'_, Written> {
        Pen { sink: &self.written, rules: &self.rules }
    }

    pub(crate) fn engine(&self) -> Engine<'_, Written, Functions> {
        Engine {
            thread: &self.thread,
            pen: self.pen(),
            codes: &self.codes,
            library: &self.functions,
            way: &self.way,
            since: self.since.get(),
            shows_outer: self.shows_outer.get(),
        }
    }

    pub(crate) fn enter(&self, entering: Entering, frame: Frame) -> Verdict {
        self.engine().enter(entering, frame)
    }

    pub(crate) fn leave(&self, leaving: Leaving, frame: Frame) -> Verdict {
        self.engine().leave(leaving, frame)
    }

    pub(crate) fn events(&self) -> Vec<What> {
        self.written.events.borrow().iter().map(|event| event.1).collect()
    }

    pub(crate) fn replay(&self) -> Replayed {
        let mut replayed = Replayed::default();
        for event in &*self.written.events.borrow() {
            replayed.take(event);
        }
        replayed
    }
}

/// What a reader makes of the events, and whether they are as a reader may expect.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// The words of what is open.
    pub(crate) open: Vec<u64>,
    /// Calls that were counted, by their functions' numbers.
    pub(crate) counted: Vec<u32>,
    last: u64,
}

impl Replayed {
    pub(crate) fn take(&mut self, event: &Event) {
        let (ticks, what, words) = event;
        assert!(*ticks >= self.last || self.last == 0, "time goes back: {event:?}");
        self.last = *ticks;
        match what {
            What::Call | What::NativeCall | What::Generator | What::Resume => {
                self.open.push(words[0]);
                self.counted.extend(function_of(words[0]));
            }
            What::Collection => self.open.push(words[0]),
            What::Open => {
                assert_eq!(words[1], self.open.len() as u64, "open at another depth: {event:?}");
                self.open.push(words[0]);
            }
            What::Return | What::Yield | What::Raise | What::CollectionEnd => {
                assert!(self.open.pop().is_some(), "nothing is open: {event:?}");
            }
            What::Name | What::Demoted | What::Note => {}
        }
    }

    /// The functions that are open, outermost first, without spans and native functions.
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

/// A span or a native function of this number.
pub(crate) fn label_call(number: u32) -> Call {
    Call::to_label(stackweave_core::BlobId::new(number).unwrap()).unwrap()
}

impl World {
    /// A span begins in the innermost frame.
    pub(crate) fn begin_span(&self, number: u32) {
        let top = *self.thread.shadow.top();
        let call = label_call(number).to_bits();
        let entry = crate::entry::Entry { key: top.key | 1, call, form: Form::Span, ..top };
        let ticks = self.written.now();
        let record = || self.written.record(ticks, What::Call, &[call]);
        self.thread.begin_by(self.pen(), entry, record);
    }

    /// The span that began last ends.
    pub(crate) fn end_span(&self) -> bool {
        let ticks = self.written.now();
        let record = || self.written.record(ticks, What::Return, &[]);
        self.thread.end_span(self.pen(), ticks, Form::Span, record)
    }
}
