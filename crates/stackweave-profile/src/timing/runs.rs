//! Runs: one row for each compilation, query or other run of a program.

use serde_json::{Map, Value};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Ending;

use super::attributes;
use super::open_run::PhaseTime;
use super::read_phases::RecordedRun;
use crate::aggregate::FunctionId;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// From 1, in the order in which runs began.
    pub number: usize,
    /// The number of the run that contains it.
    pub parent: Option<usize>,
    /// The system's id of its process.
    pub process: u32,
    /// The system's id of its thread.
    pub thread: u32,
    /// The name of its thread.
    pub thread_name: String,
    /// The function that ran, in the report's table.
    pub function: FunctionId,
    /// The time at which it began, in nanoseconds since the first process began to record.
    pub began_ns: u64,
    /// The duration in the selected time.
    pub duration_ns: u64,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it was left open when something around it ended.
    pub left_open: bool,
    /// Whether its end is not in the recording.
    pub unfinished: bool,
    /// Its attributes, from its start and its end.
    pub attributes: Map<String, Value>,
    /// Its phases without a file: those with the longest total time first.
    pub phases: Vec<RunPhase>,
    /// The number of phases that began in it, including these.
    pub phases_count: u64,
    /// The maximum number of open phases in it.
    pub deepest: usize,
}

impl RunRow {
    /// Returns the attributes as a JSON object.
    pub fn attributes_json(&self) -> String {
        Value::Object(self.attributes.clone()).to_string()
    }
}

/// The phases of one name in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPhase {
    /// The function, in the report's table.
    pub function: FunctionId,
    /// The number of phases.
    pub calls: u64,
    /// The time, counted once for nested ones.
    pub total_ns: u64,
    /// The same without phases inside of them that have no file either: these times add up to at most the run's time.
    pub self_ns: u64,
}

/// Returns the row of a run, of a process that began to record `later` than the first one. Rows are numbered
/// afterwards.
pub(super) fn row(
    run: &RecordedRun,
    process: &ProcessRecording,
    later: u64,
    mut function: impl FnMut(u32) -> FunctionId,
) -> Option<RunRow> {
    let duration_ns = run.ns?;
    let thread = process.dictionary().thread(run.thread);
    let mut phases: Vec<RunPhase> = Vec::with_capacity(run.sums.phases.len());
    for (frame, &PhaseTime { calls, ns, self_ns }) in &run.sums.phases {
        phases.push(RunPhase { function: function(*frame), calls, total_ns: ns, self_ns });
    }
    phases.sort_unstable_by_key(|phase| (core::cmp::Reverse(phase.total_ns), phase.function));
    Some(RunRow {
        number: 0,
        parent: None,
        process: process.start().pid,
        thread: thread.map_or(0, |thread| thread.tid),
        thread_name: thread.map(|thread| thread.name.clone()).unwrap_or_default(),
        function: function(run.frame),
        began_ns: run.began.saturating_add(later),
        duration_ns,
        failed: run.ending == Some(Ending::Failed),
        left_open: run.ending == Some(Ending::LeftOpen),
        unfinished: run.ending.is_none(),
        attributes: attributes::merged(&run.begin_details, &run.end_details),
        phases,
        phases_count: run.sums.begun,
        deepest: run.sums.deepest,
    })
}

/// Sorts rows by the start of runs, and numbers them. `parents` has for each row the index of the run around it.
pub(super) fn numbered(rows: Vec<RunRow>, parents: &[Option<usize>]) -> Vec<RunRow> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    // Of runs that began at the same time the outer one was read first.
    order.sort_by_key(|index| (rows[*index].began_ns, *index));
    let mut numbers = vec![0; rows.len()];
    order.iter().zip(1..).for_each(|(index, number)| numbers[*index] = number);
    let mut numbered: Vec<RunRow> = rows
        .into_iter()
        .enumerate()
        .map(|(index, row)| RunRow {
            number: numbers[index],
            parent: parents[index].map(|parent| numbers[parent]),
            ..row
        })
        .collect();
    numbered.sort_unstable_by_key(|row| row.number);
    numbered
}
