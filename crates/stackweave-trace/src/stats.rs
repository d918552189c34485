//! Statistics of a trace.

use std::cell::Cell;
use std::time::Duration;

use stackweave_core::{CodeId, FrameSource, RawFrame};
use stackweave_cpython::calls::Mechanism;
use stackweave_store::label;

use crate::limits::CountedLimits;
use crate::session::TraceSession;
use crate::sink::{Sink, TraceEvent};
use crate::trace::{NANOSECONDS, Trace};
use crate::traced_threads;

/// A function that is not recorded any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemotedFunction {
    /// Its qualified name.
    pub name: String,
    /// Its file.
    pub filename: String,
    /// The line on which it begins.
    pub first_line: Option<u32>,
    /// The number of its calls that were recorded.
    pub calls: u64,
    /// Their mean time.
    pub mean: Duration,
}

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStats {
    /// The mechanism that reports calls.
    pub mechanism: Mechanism,
    /// The reason why it is not the best mechanism for this version.
    pub fallback_reason: Option<String>,
    /// Calls that were recorded, including resumptions.
    pub calls: u64,
    /// Calls of functions written in C that were recorded.
    pub native_calls: u64,
    /// The number of times that the stack of a thread had changed without an event: greenlets, frames without events.
    pub repairs: u64,
    /// Ends of calls whose begin had no event.
    pub ignored_ends: u64,
    /// Calls that came after `max_events`.
    pub dropped: u64,
    /// Calls that were too short or too deep.
    pub hidden: u64,
    /// Functions that the filters exclude.
    pub left_out: u64,
    /// The number of times that the C stack was so full that deeper calls were not recorded.
    pub stepped_aside: u64,
    /// Threads that were not recorded to their end: the program has set a profile function of its own.
    pub unrecorded_threads: u64,
    /// The number of times that another tool has removed the frame evaluation hook. Calls after that are missing.
    pub taken_out: u64,
    /// Other interpreters that existed meanwhile. Their calls are missing.
    pub other_interpreters: u64,
    /// Threads that were traced.
    pub threads: u64,
    /// Functions that are not recorded any more.
    pub demoted: Vec<DemotedFunction>,
}

impl Trace {
    /// Returns the statistics up to now.
    pub(crate) fn stats(&self, session: Option<&TraceSession>) -> TraceStats {
        let (mut calls, mut native_calls, mut threads) = (0, 0, 0);
        // SAFETY: the callers hold the GIL.
        unsafe {
            traced_threads::visit(|thread| {
                calls += thread.calls.get();
                native_calls += thread.native_calls.get();
                threads += u64::from(thread.calls.get() > 0);
            });
        }
        let count = |of: fn(&CountedLimits) -> &Cell<u64>| session.map_or(0, |session| of(&session.rules).get());
        TraceStats {
            mechanism: self.mechanism,
            fallback_reason: self.fallback_reason.clone(),
            calls: calls + session.map_or(0, |session| session.ended_calls.get()) + count(|rules| &rules.late),
            native_calls: native_calls + session.map_or(0, |session| session.ended_native_calls.get()),
            repairs: count(|rules| &rules.repairs),
            ignored_ends: count(|rules| &rules.ignored_ends),
            dropped: count(|rules| &rules.dropped),
            hidden: count(|rules| &rules.hidden),
            left_out: session.map_or(0, |session| session.left_out.get()),
            stepped_aside: self.stepped_aside,
            unrecorded_threads: self.unrecorded_threads,
            taken_out: self.taken_out,
            other_interpreters: self.other_interpreters,
            threads: threads + session.map_or(0, |session| session.ended_threads.get()),
            demoted: session.map_or(Vec::new(), |session| self.demoted(session)),
        }
    }

    fn demoted(&self, session: &TraceSession) -> Vec<DemotedFunction> {
        let demoted = session.demoted.borrow();
        let functions = demoted.iter().filter_map(|(number, timing)| {
            let frame = RawFrame::python(CodeId::new(*number)?, RawFrame::MAX_INSTRUCTION, false);
            let location = session.source.locate(frame)?;
            let mean = u128::from(timing.ticks / u64::from(timing.calls.max(1)));
            let nanoseconds = mean * u128::from(NANOSECONDS) / u128::from(self.ticks_per_second.max(1));
            Some(DemotedFunction {
                name: location.qualname.unwrap_or(location.name).to_string(),
                filename: location.filename.to_string(),
                first_line: location.first_line,
                calls: timing.calls.into(),
                mean: Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)),
            })
        });
        functions.collect()
    }
}

/// Records what is missing in the recording.
pub(crate) fn write_notes(session: &TraceSession, stats: &TraceStats) {
    let live = session.live();
    let notes = [
        (
            "times the stack of a thread had changed without an event, as greenlets do: calls there may end late",
            stats.repairs,
        ),
        ("calls dropped: there were too many", stats.dropped),
        ("calls left out: too short or too deep", stats.hidden),
        ("functions left out by filters", stats.left_out),
        ("deep recursions not recorded to their end", stats.stepped_aside),
        (
            "threads not recorded to their end: the program has set a profile function of its own",
            stats.unrecorded_threads,
        ),
        ("times the evaluation hook was taken out by another tool: calls after that are missing", stats.taken_out),
        ("sub-interpreters: calls in them are not recorded", stats.other_interpreters),
    ];
    for (name, count) in notes.into_iter().filter(|(_, count)| *count > 0) {
        if let Some(frame) = label(name, "", 0) {
            live.record(live.now(), TraceEvent::Note, &[frame.to_bits(), count]);
        }
    }
}
