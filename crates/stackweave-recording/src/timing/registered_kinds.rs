//! The kinds of events of a timing recording, with the numbers that its recorder assigned.

use stackweave_core::EventKind;

use crate::events;
use crate::live::FixedKind;
use crate::{KindNumber, Recorder};

/// A kind whose events have `WORDS` words: its number for events at given times, and its fast form for events now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimingKind<const WORDS: usize> {
    pub(crate) number: KindNumber,
    pub(crate) fixed: FixedKind<WORDS>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TimingKinds {
    pub(crate) begin: TimingKind<1>,
    pub(crate) begin_code: TimingKind<3>,
    pub(crate) begin_with: KindNumber,
    pub(crate) begin_run: KindNumber,
    pub(crate) end: TimingKind<0>,
    pub(crate) end_with: KindNumber,
    pub(crate) end_failed: KindNumber,
    pub(crate) end_left_open: TimingKind<0>,
    pub(crate) still_open: TimingKind<2>,
    pub(crate) unmatched_pop: TimingKind<2>,
}

impl TimingKinds {
    /// Registers the kinds; returns `None` if the recording has no numbers left.
    pub(crate) fn register(recorder: &Recorder) -> Option<Self> {
        Some(Self {
            begin: kind(recorder, events::BEGIN)?,
            begin_code: kind(recorder, events::BEGIN_CODE)?,
            begin_with: recorder.register(events::BEGIN_WITH)?,
            begin_run: recorder.register(events::BEGIN_RUN)?,
            end: kind(recorder, events::END)?,
            end_with: recorder.register(events::END_WITH)?,
            end_failed: recorder.register(events::END_FAILED)?,
            end_left_open: kind(recorder, events::END_LEFT_OPEN)?,
            still_open: kind(recorder, events::STILL_OPEN)?,
            unmatched_pop: kind(recorder, events::UNMATCHED_POP)?,
        })
    }
}

fn kind<const WORDS: usize>(recorder: &Recorder, of: EventKind) -> Option<TimingKind<WORDS>> {
    let number = recorder.register(of)?;
    Some(TimingKind { number, fixed: number.fixed()? })
}
