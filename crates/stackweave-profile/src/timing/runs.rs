//! Runs: one row for each compilation, query or whatever a program calls so.

use serde_json::{Map, Value};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Ending;

use super::attributes;
use super::open_run::Spent;
use super::walk::WalkedRun;
use crate::aggregate::FunctionId;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// From 1, in the order in which runs began.
    pub number: usize,
    /// The number of the run that it is a part of.
    pub parent: Option<usize>,
    /// The system's number of its process.
    pub process: u32,
    /// The system's number of its thread.
    pub thread: u32,
    /// The name of its thread.
    pub thread_name: String,
    /// What ran: a function of the report's table.
    pub function: FunctionId,
    /// When it began, in nanoseconds since the first process began to record.
    pub began_ns: u64,
    /// How much of the time that was asked for it took.
    pub duration_ns: u64,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it was left open, and ended with something around it.
    pub left_open: bool,
    /// Whether there is no end of it in the recording.
    pub unfinished: bool,
    /// What was said about it: at its begin, and at its end.
    pub attributes: Map<String, Value>,
    /// What its time went to, of phases that have no file: the one that took longest in all first.
    pub phases: Vec<RunPhase>,
    /// How many phases began in it, all that are in these among them.
    pub phases_count: u64,
    /// How many phases were open in it at most.
    pub deepest: usize,
}

impl RunRow {
    /// What was said about it, as a JSON object.
    pub fn attributes_json(&self) -> String {
        Value::Object(self.attributes.clone()).to_string()
    }
}

/// Phases of one name in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPhase {
    /// A function of the report's table.
    pub function: FunctionId,
    /// How many there were.
    pub calls: u64,
    /// How long they took; of those inside of each other, the outermost.
    pub total_ns: u64,
    /// The same without phases inside of them that have no file either: these add up to no more than the run took.
    pub own_ns: u64,
}

/// The row of a run, of a process that began to record so much later than the first. Numbers are given later.
pub(super) fn row(
    run: &WalkedRun,
    process: &ProcessRecording,
    later: u64,
    mut function: impl FnMut(u32) -> FunctionId,
) -> Option<RunRow> {
    let duration_ns = run.ns?;
    let thread = process.dictionary().thread(run.thread);
    let mut phases: Vec<RunPhase> = Vec::with_capacity(run.sums.phases.len());
    for (frame, &Spent { calls, ns, own_ns }) in &run.sums.phases {
        phases.push(RunPhase { function: function(*frame), calls, total_ns: ns, own_ns });
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
        failed: run.how == Some(Ending::Failed),
        left_open: run.how == Some(Ending::LeftOpen),
        unfinished: run.how.is_none(),
        attributes: attributes::merged(&run.begin_details, &run.end_details),
        phases,
        phases_count: run.sums.begun,
        deepest: run.sums.deepest,
    })
}

/// Puts rows into the order in which runs began, and numbers them. `parents` has for each the place of the run around it.
pub(super) fn numbered(rows: Vec<RunRow>, parents: &[Option<usize>]) -> Vec<RunRow> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    // Of runs that began at the same time the outer one was read first.
    order.sort_by_key(|place| (rows[*place].began_ns, *place));
    let mut numbers = vec![0; rows.len()];
    order.iter().zip(1..).for_each(|(place, number)| numbers[*place] = number);
    let mut numbered: Vec<RunRow> = rows
        .into_iter()
        .enumerate()
        .map(|(place, row)| RunRow {
            number: numbers[place],
            parent: parents[place].map(|parent| numbers[parent]),
            ..row
        })
        .collect();
    numbered.sort_unstable_by_key(|row| row.number);
    numbered
}
