//! The time of an event: now, or a time that the caller gives.
//!
//! Hot file: neither allocates nor locks.

use crate::timing::registered_kinds::TimingKind;
use crate::{KindNumber, Recorder};

/// The largest number of ticks that an event can have.
const LAST_TICK: u64 = u64::MAX >> 8;

pub(crate) trait TimeSource: Copy {
    /// Returns one moment, for several events at the same time.
    fn moment(self, recorder: &Recorder) -> GivenTime;

    /// Returns the caller's time; `None` for the recording's clock.
    fn given(self) -> Option<GivenTime>;

    fn record<const WORDS: usize>(self, recorder: &Recorder, kind: TimingKind<WORDS>, words: [u64; WORDS]);

    fn record_bytes(self, recorder: &Recorder, kind: KindNumber, words: &[u64], bytes: &[u8]);
}

/// Now, by the recording's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now;

/// A time that the caller gives, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenTime(u64);

impl GivenTime {
    /// Returns a time after the beginning of a recording whose ticks are nanoseconds.
    pub(crate) fn nanoseconds(since_start: u64) -> Self {
        Self(since_start.min(LAST_TICK))
    }
}

impl TimeSource for Now {
    #[inline]
    fn moment(self, recorder: &Recorder) -> GivenTime {
        GivenTime(recorder.ticks_now())
    }

    #[inline]
    fn given(self) -> Option<GivenTime> {
        None
    }

    #[inline]
    fn record<const WORDS: usize>(self, recorder: &Recorder, kind: TimingKind<WORDS>, words: [u64; WORDS]) {
        recorder.record_fixed(kind.fixed, words);
    }

    #[inline]
    fn record_bytes(self, recorder: &Recorder, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        recorder.record_bytes(kind, words, bytes);
    }
}

impl TimeSource for GivenTime {
    #[inline]
    fn moment(self, _: &Recorder) -> GivenTime {
        self
    }

    #[inline]
    fn given(self) -> Option<GivenTime> {
        Some(self)
    }

    #[inline]
    fn record<const WORDS: usize>(self, recorder: &Recorder, kind: TimingKind<WORDS>, words: [u64; WORDS]) {
        recorder.record_at(self.0, kind.number, &words);
    }

    #[inline]
    fn record_bytes(self, recorder: &Recorder, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        recorder.record_bytes_at(self.0, kind, words, bytes);
    }
}
