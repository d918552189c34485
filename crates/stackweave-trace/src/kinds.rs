//! The kinds of events of a trace, and a recorder as something to write to.

use stackweave_core::EventKind;
use stackweave_recording::events;
use stackweave_recording::live::FixedKind;
use stackweave_recording::{KindNumber, Recorder};

use crate::sink::{Sink, What};

/// The kind of each event, in the order of [`What`].
const KINDS: [EventKind; What::COUNT] = [
    events::CALL,
    events::C_CALL,
    events::GENERATOR,
    events::RESUME,
    events::OPEN,
    events::END,
    events::YIELD,
    events::RAISE,
    events::GC,
    events::GC_END,
    events::NAME,
    events::DEMOTED,
    events::TRACE_NOTE,
];

/// The numbers of the kinds in a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds([KindNumber; What::COUNT]);

impl Kinds {
    /// `None` if the recording has no numbers left.
    pub(crate) fn register(recorder: &Recorder) -> Option<Self> {
        let mut numbers = KINDS.map(|kind| recorder.register(kind));
        let first = (*numbers.first()?)?;
        let whole = numbers.iter().all(Option::is_some);
        whole.then(|| Self(numbers.each_mut().map(|number| number.take().unwrap_or(first))))
    }

    #[inline(always)]
    pub(crate) fn of(&self, what: What) -> KindNumber {
        self.0[what as usize]
    }
}

/// The numbers of what happens most, for [`Recorder::record_fixed`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotKinds {
    pub(crate) call: FixedKind<1>,
    pub(crate) native: FixedKind<1>,
    pub(crate) generator: FixedKind<2>,
    pub(crate) resume: FixedKind<2>,
    /// In the order of [`Leaving`](stackweave_cpython::calls::Leaving).
    pub(crate) ends: [FixedKind<0>; 3],
}

impl HotKinds {
    pub(crate) fn of(kinds: &Kinds) -> Option<Self> {
        let end = |what| kinds.of(what).fixed();
        Some(Self {
            call: kinds.of(What::Call).fixed()?,
            native: kinds.of(What::NativeCall).fixed()?,
            generator: kinds.of(What::Generator).fixed()?,
            resume: kinds.of(What::Resume).fixed()?,
            ends: [end(What::Return)?, end(What::Yield)?, end(What::Raise)?],
        })
    }
}

/// A recording, as the calling thread writes to it.
#[derive(Debug)]
pub(crate) struct Live<'a> {
    pub(crate) recorder: &'a Recorder,
    pub(crate) kinds: &'a Kinds,
}

impl Sink for Live<'_> {
    fn now(&self) -> u64 {
        self.recorder.ticks_now()
    }

    fn record(&self, ticks: u64, what: What, words: &[u64]) {
        self.recorder.record_at(ticks, self.kinds.of(what), words);
    }
}

/// What is written for another thread, until it is handed over.
#[derive(Debug)]
pub(crate) struct Collected<'a> {
    pub(crate) kinds: &'a Kinds,
    pub(crate) ticks: u64,
    pub(crate) events: std::cell::RefCell<Vec<(u64, KindNumber, Vec<u64>)>>,
}

impl<'a> Collected<'a> {
    /// All at this time.
    pub(crate) fn new(kinds: &'a Kinds, ticks: u64) -> Self {
        Self { kinds, ticks, events: std::cell::RefCell::default() }
    }

    /// Records it all for the thread that the kernel knows by this number.
    pub(crate) fn hand_over(self, recorder: &Recorder, tid: u32) {
        recorder.record_for(tid, &self.events.into_inner());
    }
}

impl Sink for Collected<'_> {
    fn now(&self) -> u64 {
        self.ticks
    }

    fn record(&self, ticks: u64, what: What, words: &[u64]) {
        self.events.borrow_mut().push((ticks, self.kinds.of(what), words.to_vec()));
    }
}
