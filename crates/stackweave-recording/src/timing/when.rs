//! When an event is: now, or at a time that the caller gives.
//!
//! Hot file: neither allocates nor locks.

use crate::timing::kinds::Kind;
use crate::{KindNumber, Recorder};

/// The most ticks that an event can have.
const LAST_TICK: u64 = u64::MAX >> 8;

pub(crate) trait When: Copy {
    /// The one moment that several events shall have.
    fn moment(self, recorder: &Recorder) -> At;

    /// The given time, if one is given.
    fn given(self) -> Option<At>;

    fn record<const WORDS: usize>(self, recorder: &Recorder, kind: Kind<WORDS>, words: [u64; WORDS]);

    fn record_bytes(self, recorder: &Recorder, kind: KindNumber, words: &[u64], bytes: &[u8]);
}

/// Now, by the recording's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now;

/// At so many ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At(u64);

impl At {
    /// So many nanoseconds after the beginning of a recording whose ticks are nanoseconds.
    pub(crate) fn nanoseconds(since_start: u64) -> Self {
        Self(since_start.min(LAST_TICK))
    }
}

impl When for Now {
    #[inline]
    fn moment(self, recorder: &Recorder) -> At {
        At(recorder.ticks_now())
    }

    #[inline]
    fn given(self) -> Option<At> {
        None
    }

    #[inline]
    fn record<const WORDS: usize>(self, recorder: &Recorder, kind: Kind<WORDS>, words: [u64; WORDS]) {
        recorder.record_fixed(kind.fixed, words);
    }

    #[inline]
    fn record_bytes(self, recorder: &Recorder, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        recorder.record_bytes(kind, words, bytes);
    }
}

impl When for At {
    #[inline]
    fn moment(self, _: &Recorder) -> At {
        self
    }

    #[inline]
    fn given(self) -> Option<At> {
        Some(self)
    }

    #[inline]
    fn record<const WORDS: usize>(self, recorder: &Recorder, kind: Kind<WORDS>, words: [u64; WORDS]) {
        recorder.record_at(self.0, kind.number, &words);
    }

    #[inline]
    fn record_bytes(self, recorder: &Recorder, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        recorder.record_bytes_at(self.0, kind, words, bytes);
    }
}
