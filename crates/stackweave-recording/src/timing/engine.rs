//! Pushes and pops: they update the thread's stack and record the corresponding events.
//!
//! Hot file: [`begin`] and [`end`] neither allocate nor lock nor make system calls on a warm thread, except where the
//! recorder does so once in some thousand events.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::{RawFrame, StackId};
use stackweave_store::label;

use crate::timing::anomalies::AnomalyCounters;
use crate::timing::event_time::{Now, TimeSource};
use crate::timing::open_phases::{OpenPhases, with_open_phases};
use crate::timing::registered_kinds::TimingKinds;
use crate::timing::token::{Outcome, Token};
use crate::{Recorder, gap_count};

/// Longer JSON is replaced by its length: it would not fit into a buffer, and the phase would be lost with it.
pub(crate) const MAX_JSON_BYTES: usize = 60_000;

/// The state that all threads share.
#[derive(Debug)]
pub(crate) struct TimingEngine {
    /// Unique in the process; never 0.
    pub(crate) key: u64,
    pub(crate) recorder: Recorder,
    pub(crate) kinds: TimingKinds,
    pub(crate) counters: AnomalyCounters,
    unmatched: RawFrame,
}

/// Optional data of a phase that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PhaseDetails<'a> {
    Nothing,
    Code { bytecode_count: u64, inline_depth: u64 },
    Json(&'a [u8]),
    Run(&'a [u8]),
}

impl<'a> PhaseDetails<'a> {
    pub(crate) fn json(json: &'a [u8]) -> Self {
        if json.is_empty() { Self::Nothing } else { Self::Json(json) }
    }
}

impl TimingEngine {
    pub(crate) fn new(recorder: Recorder) -> Option<Arc<Self>> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let kinds = TimingKinds::register(&recorder)?;
        let unmatched = label("pop without push", "", 0)?;
        let key = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Some(Arc::new(Self { key, recorder, kinds, counters: AnomalyCounters::default(), unmatched }))
    }

    #[inline]
    fn record_begin(&self, when: impl TimeSource, frame: RawFrame, about: PhaseDetails<'_>) {
        let (recorder, kinds, frame) = (&self.recorder, &self.kinds, frame.to_bits());
        match about {
            PhaseDetails::Nothing => when.record(recorder, kinds.begin, [frame]),
            PhaseDetails::Code { bytecode_count, inline_depth } => {
                when.record(recorder, kinds.begin_code, [frame, bytecode_count, inline_depth]);
            }
            PhaseDetails::Json(json) => with_fitting(json, |json| {
                when.record_bytes(recorder, kinds.begin_with, &[frame, 0], json);
            }),
            PhaseDetails::Run(json) => with_fitting(json, |json| {
                when.record_bytes(recorder, kinds.begin_run, &[frame], json);
            }),
        }
    }

    #[inline]
    fn record_end(&self, when: impl TimeSource, outcome: Outcome, json: &[u8]) {
        let (recorder, kinds) = (&self.recorder, &self.kinds);
        match outcome {
            Outcome::Done if json.is_empty() => when.record(recorder, kinds.end, []),
            Outcome::Done => with_fitting(json, |json| when.record_bytes(recorder, kinds.end_with, &[], json)),
            Outcome::Failed => with_fitting(json, |json| when.record_bytes(recorder, kinds.end_failed, &[], json)),
        }
    }

    /// Prepares an event: records the open phases again if the recording may have lost them.
    #[inline]
    fn prepare(&self, open: &mut OpenPhases, when: impl TimeSource) {
        if let Some(given) = when.given() {
            open.given = Some(given);
        }
        if open.gaps != gap_count() {
            self.record_open_again(open, when);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_open_again(&self, open: &mut OpenPhases, when: impl TimeSource) {
        open.gaps = gap_count();
        let here = process::id();
        let is_new_file = open.process != here;
        open.process = here;
        let (recorder, kind) = (&self.recorder, self.kinds.still_open);
        let moment = when.moment(recorder);
        for (frame, depth) in open.frames.iter().zip(0..) {
            moment.record(recorder, kind, [frame.to_bits(), depth]);
        }
        if open.frames.is_empty() && !is_new_file {
            moment.record(recorder, kind, [0, 0]);
        }
    }

    /// Ends the innermost `count` phases as left open.
    fn leave_open(&self, open: &mut OpenPhases, count: usize, when: impl TimeSource) {
        for _ in 0..count {
            open.pop();
            when.record(&self.recorder, self.kinds.end_left_open, []);
        }
        self.counters.left_open(count);
    }

    /// Ends the phases of a thread that ends. A forked child that has recorded nothing does not create a file for them.
    pub(crate) fn end_of_thread(&self, open: &mut OpenPhases) {
        let count = open.frames.len();
        if count == 0 || open.process != process::id() {
            return;
        }
        let moment = open.given.unwrap_or_else(|| Now.moment(&self.recorder));
        self.prepare(open, moment);
        self.leave_open(open, count, moment);
    }

    pub(crate) fn unmatched_pop(&self, when: impl TimeSource, frame: Option<RawFrame>, stack: Option<StackId>) {
        self.counters.unmatched_pop();
        let frame = frame.unwrap_or(self.unmatched).to_bits();
        let stack = stack.map_or(0, |stack| stack.get().into());
        when.record(&self.recorder, self.kinds.unmatched_pop, [frame, stack]);
    }
}

/// Begins a phase.
#[inline]
pub(crate) fn begin(
    engine: &Arc<TimingEngine>,
    when: impl TimeSource,
    frame: RawFrame,
    about: PhaseDetails<'_>,
) -> Token {
    let begun = with_open_phases(engine, |open| {
        engine.prepare(open, when);
        let token = open.push(frame);
        engine.record_begin(when, frame, about);
        token
    });
    begun.unwrap_or(Token::NONE)
}

/// Ends the innermost phase. Returns `false` if none is open.
#[inline]
pub(crate) fn end(engine: &Arc<TimingEngine>, when: impl TimeSource, outcome: Outcome, json: &[u8]) -> bool {
    let ended = with_open_phases(engine, |open| {
        engine.prepare(open, when);
        let is_open = open.pop();
        if is_open {
            engine.record_end(when, outcome, json);
        }
        is_open
    });
    // A refused end belongs to a start that was refused as well, and both were counted.
    ended.unwrap_or(true)
}

/// Ends the phase with this token, and the phases inside it. Returns `false` if it is not open.
pub(crate) fn close(
    engine: &Arc<TimingEngine>,
    when: impl TimeSource,
    token: Token,
    (outcome, json): (Outcome, &[u8]),
) -> bool {
    let closed = with_open_phases(engine, |open| {
        engine.prepare(open, when);
        let inside = open.inside(token)?;
        if inside == 0 {
            open.pop();
            engine.record_end(when, outcome, json);
            return Some(());
        }
        let moment = when.moment(&engine.recorder);
        engine.leave_open(open, inside, moment);
        open.pop();
        engine.record_end(moment, outcome, json);
        Some(())
    });
    let is_closed = closed.flatten().is_some();
    if closed == Some(None) && token != Token::NONE {
        engine.counters.lost_token();
    }
    is_closed
}

/// Records the open phases again if the recording may have lost them.
pub(crate) fn catch_up(engine: &Arc<TimingEngine>, when: impl TimeSource) {
    with_open_phases(engine, |open| engine.prepare(open, when));
}

/// Calls `record` with the JSON, or with its length if it is too long.
#[inline]
fn with_fitting(json: &[u8], record: impl FnOnce(&[u8])) {
    if json.len() <= MAX_JSON_BYTES {
        return record(json);
    }
    record(format!("{{\"omitted_bytes\": {}}}", json.len()).as_bytes());
}
