//! The kinds of events of a trace, and the recorder as a sink.

use stackweave_core::EventKind;
use stackweave_recording::events;
use stackweave_recording::live::FixedKind;
use stackweave_recording::{KindNumber, Recorder};

use crate::sink::{Sink, TraceEvent};

/// The kind of each event, in the order of [`TraceEvent`].
const KINDS: [EventKind; TraceEvent::COUNT] = [
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
pub(crate) struct TraceKinds([KindNumber; TraceEvent::COUNT]);

impl TraceKinds {
    /// Declares the kinds. `None` if the recording has no numbers left.
    pub(crate) fn register(recorder: &Recorder) -> Option<Self> {
        let mut numbers = KINDS.map(|kind| recorder.register(kind));
        let first = (*numbers.first()?)?;
        let is_complete = numbers.iter().all(Option::is_some);
        is_complete.then(|| Self(numbers.each_mut().map(|number| number.take().unwrap_or(first))))
    }

    #[inline(always)]
    pub(crate) fn of(&self, what: TraceEvent) -> KindNumber {
        self.0[what as usize]
    }
}

/// The numbers of the most frequent kinds, for [`Recorder::record_fixed`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotTraceKinds {
    pub(crate) call: FixedKind<1>,
    pub(crate) native: FixedKind<1>,
    pub(crate) generator: FixedKind<2>,
    pub(crate) resume: FixedKind<2>,
    /// In the order of [`Leaving`](stackweave_cpython::calls::Leaving).
    pub(crate) ends: [FixedKind<0>; 3],
}

impl HotTraceKinds {
    pub(crate) fn of(kinds: &TraceKinds) -> Option<Self> {
        let end = |what| kinds.of(what).fixed();
        Some(Self {
            call: kinds.of(TraceEvent::Call).fixed()?,
            native: kinds.of(TraceEvent::NativeCall).fixed()?,
            generator: kinds.of(TraceEvent::Generator).fixed()?,
            resume: kinds.of(TraceEvent::Resume).fixed()?,
            ends: [end(TraceEvent::Return)?, end(TraceEvent::Yield)?, end(TraceEvent::Raise)?],
        })
    }
}

/// A recording to which the calling thread writes.
#[derive(Debug)]
pub(crate) struct LiveSink<'a> {
    pub(crate) recorder: &'a Recorder,
    pub(crate) kinds: &'a TraceKinds,
}

impl Sink for LiveSink<'_> {
    fn now(&self) -> u64 {
        self.recorder.ticks_now()
    }

    fn record(&self, ticks: u64, what: TraceEvent, words: &[u64]) {
        self.recorder.record_at(ticks, self.kinds.of(what), words);
    }
}

/// Events that are collected for another thread.
#[derive(Debug)]
pub(crate) struct CollectedEvents<'a> {
    pub(crate) kinds: &'a TraceKinds,
    pub(crate) ticks: u64,
    pub(crate) events: std::cell::RefCell<Vec<(u64, KindNumber, Vec<u64>)>>,
}

impl<'a> CollectedEvents<'a> {
    /// Creates a list of events, all at this time.
    pub(crate) fn new(kinds: &'a TraceKinds, ticks: u64) -> Self {
        Self { kinds, ticks, events: std::cell::RefCell::default() }
    }

    /// Records the events for the thread with this kernel id.
    pub(crate) fn record_for(self, recorder: &Recorder, tid: u32) {
        recorder.record_for_thread(tid, &self.events.into_inner());
    }
}

impl Sink for CollectedEvents<'_> {
    fn now(&self) -> u64 {
        self.ticks
    }

    fn record(&self, ticks: u64, what: TraceEvent, words: &[u64]) {
        self.events.borrow_mut().push((ticks, self.kinds.of(what), words.to_vec()));
    }
}
