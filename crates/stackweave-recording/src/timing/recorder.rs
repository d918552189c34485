//! What programs call.
//!
//! Hot file: [`Timing::push`] and [`Timing::pop`] neither allocate nor lock nor call the system on a thread that is warm, but as
//! the recorder does once in some thousand events.

use std::sync::Arc;

use stackweave_core::{RawFrame, StackId};

use crate::Recorder;
use crate::timing::at::TimingAt;
use crate::timing::engine::{self, About, Engine};
use crate::timing::oddities::Oddities;
use crate::timing::open::with_frames_of;
use crate::timing::token::{Outcome, Token};
use crate::timing::when::{At, Now};

/// Phases of a program, recorded. Each thread has its own stack of open phases in each `Timing`.
///
/// A frame is a label: `stackweave_store::label(name, file, line)`. JSON is an object, or empty for nothing; in place of one of
/// more than 60,000 bytes its length is recorded.
///
/// Nothing here panics or fails: what does not fit together is counted ([`Timing::oddities`]), and the recording stays in order.
/// What is open when its thread ends is ended then, as left open. When events are missing in the recording, after a fork, a pause or
/// where buffers were full, the thread's next event is preceded by what is open.
#[derive(Debug)]
pub struct Timing(Arc<Engine>);

impl Timing {
    /// Phases go to this recording, which says about itself what it is if its options have `timing` = `1` among the extras. `None`
    /// if it has no numbers for kinds of events left.
    pub fn new(recorder: Recorder) -> Option<Self> {
        Engine::new(recorder).map(Self)
    }

    /// Where phases go to.
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    /// A phase begins.
    #[inline]
    pub fn push(&self, frame: RawFrame) -> Token {
        engine::begin(&self.0, Now, frame, About::Nothing)
    }

    /// A function is looked at that has so much bytecode, inlined so deep.
    #[inline]
    pub fn push_code(&self, frame: RawFrame, bytecode_count: u64, inline_depth: u64) -> Token {
        engine::begin(&self.0, Now, frame, About::Code { bytecode_count, inline_depth })
    }

    /// A phase begins about which there is more to say.
    pub fn push_with(&self, frame: RawFrame, json: &[u8]) -> Token {
        engine::begin(&self.0, Now, frame, About::json(json))
    }

    /// Something begins that is told of in a row of its own: one compilation, one query.
    pub fn push_run(&self, frame: RawFrame, json: &[u8]) -> Token {
        engine::begin(&self.0, Now, frame, About::Run(json))
    }

    /// What this thread has begun last ends. `false` if nothing is open: that is counted, and recorded.
    #[inline]
    pub fn pop(&self) -> bool {
        let is_open = self.pop_if_open();
        if !is_open {
            self.unmatched_pop(None, None);
        }
        is_open
    }

    /// The same, with how it ended and what there is to say about that.
    pub fn pop_with(&self, outcome: Outcome, json: &[u8]) -> bool {
        let is_open = self.pop_if_open_with(outcome, json);
        if !is_open {
            self.unmatched_pop(None, None);
        }
        is_open
    }

    /// As [`Timing::pop`], for who wants to say more about a pop without a push: then nothing is counted, and
    /// [`Timing::unmatched_pop`] shall follow.
    #[inline]
    pub fn pop_if_open(&self) -> bool {
        engine::end(&self.0, Now, Outcome::Done, &[])
    }

    /// As [`Timing::pop_with`], likewise.
    pub fn pop_if_open_with(&self, outcome: Outcome, json: &[u8]) -> bool {
        engine::end(&self.0, Now, outcome, json)
    }

    /// There was a pop without a push, at this place, or one that is not known, and on this stack.
    #[cold]
    pub fn unmatched_pop(&self, place: Option<RawFrame>, stack: Option<StackId>) {
        self.0.unmatched_pop(Now, place, stack);
    }

    /// Ends the phase that has this token, and before it what is open inside it, as left open. `false` if it is not open on this
    /// thread.
    pub fn close(&self, token: Token, outcome: Outcome, json: &[u8]) -> bool {
        engine::close(&self.0, Now, token, (outcome, json))
    }

    /// How many phases are open on this thread.
    pub fn depth(&self) -> usize {
        self.with_open(<[RawFrame]>::len)
    }

    /// What this thread has begun last, and not ended yet.
    pub fn current(&self) -> Option<RawFrame> {
        self.with_open(|open| open.last().copied())
    }

    /// Calls `look` with what is open on this thread, outermost first. Phases that it begins and ends itself are refused, and
    /// counted.
    pub fn with_open<R>(&self, look: impl FnOnce(&[RawFrame]) -> R) -> R {
        with_frames_of(&self.0, look)
    }

    /// What does not fit together in what was told so far, on all threads.
    pub fn oddities(&self) -> Oddities {
        self.0.counters.read()
    }

    /// In a forked child: what is open on this thread is recorded as open there. Its next event would do the same.
    pub fn forked(&self) {
        engine::catch_up(&self.0, Now);
    }

    /// The same functions at a given time: so many nanoseconds after the beginning of a recording that was made with
    /// [`ClockSource::Monotonic`](crate::clock::ClockSource::Monotonic). The times of a thread should not go back.
    pub fn at(&self, nanoseconds: u64) -> TimingAt<'_> {
        TimingAt { engine: &self.0, at: At::nanoseconds(nanoseconds) }
    }
}
