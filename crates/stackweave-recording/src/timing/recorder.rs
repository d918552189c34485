//! The functions that programs call.
//!
//! Hot file: [`Timing::push`] and [`Timing::pop`] neither allocate nor lock nor make system calls on a warm thread, except where
//! the recorder does so once in some thousand events.

use std::sync::Arc;

use stackweave_core::{RawFrame, StackId};

use crate::Recorder;
use crate::timing::anomalies::AnomalyCounts;
use crate::timing::engine::{self, PhaseDetails, TimingEngine};
use crate::timing::event_time::{GivenTime, Now};
use crate::timing::explicit_time::TimingAt;
use crate::timing::open_phases::with_open_frames;
use crate::timing::token::{Outcome, Token};

/// Records phases of a program. Each thread has its own stack of open phases in each `Timing`.
///
/// A frame is a label: `stackweave_store::label(name, file, line)`. JSON is an object or empty; more than 60,000 bytes of it are
/// replaced by their number.
///
/// These functions never panic or fail: mismatches are counted ([`Timing::anomalies`]), and the recording stays consistent.
/// Phases that are open when their thread ends are ended then, as left open. Where the recording lacks events, after a fork, a
/// pause or a full buffer, the open phases are recorded again before the thread's next event.
#[derive(Debug)]
pub struct Timing(Arc<TimingEngine>);

impl Timing {
    /// Records phases to this recorder. Its options should have `timing` = `1` among the extras, which marks the recording as one
    /// of phases. Returns `None` if the recording has no numbers for kinds of events left.
    pub fn new(recorder: Recorder) -> Option<Self> {
        TimingEngine::new(recorder).map(Self)
    }

    /// Returns the recorder of the phases.
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    /// Begins a phase.
    #[inline]
    pub fn push(&self, frame: RawFrame) -> Token {
        engine::begin(&self.0, Now, frame, PhaseDetails::Nothing)
    }

    /// Begins a phase for a function that is inspected, with the size of its bytecode and its inlining depth.
    #[inline]
    pub fn push_code(&self, frame: RawFrame, bytecode_count: u64, inline_depth: u64) -> Token {
        engine::begin(&self.0, Now, frame, PhaseDetails::Code { bytecode_count, inline_depth })
    }

    /// Begins a phase with details.
    pub fn push_with(&self, frame: RawFrame, json: &[u8]) -> Token {
        engine::begin(&self.0, Now, frame, PhaseDetails::json(json))
    }

    /// Begins a run: a phase with a row of its own in reports, as one compilation or one query.
    pub fn push_run(&self, frame: RawFrame, json: &[u8]) -> Token {
        engine::begin(&self.0, Now, frame, PhaseDetails::Run(json))
    }

    /// Ends the innermost phase of this thread. Returns `false` if none is open, which is counted and recorded.
    #[inline]
    pub fn pop(&self) -> bool {
        let is_open = self.pop_if_open();
        if !is_open {
            self.unmatched_pop(None, None);
        }
        is_open
    }

    /// Does the same, with an outcome and details.
    pub fn pop_with(&self, outcome: Outcome, json: &[u8]) -> bool {
        let is_open = self.pop_if_open_with(outcome, json);
        if !is_open {
            self.unmatched_pop(None, None);
        }
        is_open
    }

    /// Does the same as [`Timing::pop`], but does not count a pop without a push: the caller then reports it with
    /// [`Timing::unmatched_pop`].
    #[inline]
    pub fn pop_if_open(&self) -> bool {
        engine::end(&self.0, Now, Outcome::Done, &[])
    }

    /// Does the same as [`Timing::pop_with`], likewise.
    pub fn pop_if_open_with(&self, outcome: Outcome, json: &[u8]) -> bool {
        engine::end(&self.0, Now, outcome, json)
    }

    /// Counts and records a pop without a push, at this call site (if known) and on this stack.
    #[cold]
    pub fn unmatched_pop(&self, call_site: Option<RawFrame>, stack: Option<StackId>) {
        self.0.unmatched_pop(Now, call_site, stack);
    }

    /// Ends the phase with this token, after ending the phases inside it as left open. Returns `false` if it is not open on
    /// this thread.
    pub fn close(&self, token: Token, outcome: Outcome, json: &[u8]) -> bool {
        engine::close(&self.0, Now, token, (outcome, json))
    }

    /// Returns the number of open phases of this thread.
    pub fn depth(&self) -> usize {
        self.with_open(<[RawFrame]>::len)
    }

    /// Returns the innermost open phase of this thread.
    pub fn current(&self) -> Option<RawFrame> {
        self.with_open(|open| open.last().copied())
    }

    /// Calls `read` with the open phases of this thread, outermost first. Phases that `read` itself begins and ends are refused
    /// and counted.
    pub fn with_open<R>(&self, read: impl FnOnce(&[RawFrame]) -> R) -> R {
        with_open_frames(&self.0, read)
    }

    /// Returns the counts of mismatches so far, on all threads.
    pub fn anomalies(&self) -> AnomalyCounts {
        self.0.counters.read()
    }

    /// Records the open phases of this thread as open in a forked child. The next event would do the same.
    pub fn forked(&self) {
        engine::catch_up(&self.0, Now);
    }

    /// Returns the same functions at a given time: nanoseconds after the beginning of a recording with the clock
    /// [`ClockSource::Monotonic`](crate::clock::ClockSource::Monotonic). The times of a thread should not decrease.
    pub fn at(&self, nanoseconds: u64) -> TimingAt<'_> {
        TimingAt { engine: &self.0, at: GivenTime::nanoseconds(nanoseconds) }
    }
}
