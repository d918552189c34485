//! Runs of a compiler, a planner or a build, with the phases that their time was spent in.

use serde_json::{Value, json};
use stackweave_profile::timing::{RunRow, TimingReport};
use stackweave_recording::events;

use super::blocks::PageBlocks;
use super::head::Threads;
use super::names::Names;
use crate::error::ExportError;
use crate::source::Source;

/// The runs in the head.
#[derive(Debug)]
pub(super) struct Runs {
    /// The block of their rows; `null` if there are none.
    pub(super) block: Value,
    /// Inconsistencies of the phases, one sentence each.
    pub(super) problems: Vec<String>,
}

/// Returns whether any process has declared runs.
pub(super) fn may_exist(source: &Source<'_>) -> bool {
    source.processes().iter().any(|process| process.dictionary().declares(&events::BEGIN_RUN))
}

/// Writes the runs, if there are any.
pub(super) fn write(
    report: Option<&TimingReport>,
    threads: &Threads<'_>,
    names: &mut Names,
    blocks: &mut PageBlocks<'_>,
) -> Result<Runs, ExportError> {
    let mut runs = Runs { block: Value::Null, problems: Vec::new() };
    let Some(report) = report else { return Ok(runs) };
    runs.problems = report.problems();
    if !report.runs.is_empty() {
        let rows = rows(report, threads, names);
        runs.block = blocks.json(&rows)?.into();
    }
    Ok(runs)
}

fn rows(report: &TimingReport, threads: &Threads<'_>, names: &mut Names) -> Value {
    let functions = report.functions.functions().iter();
    let functions: Vec<usize> = functions.map(|function| names.function(function.clone())).collect();
    let row = |run: &RunRow| {
        let phases = run.phases.iter().map(|phase| {
            json!({
                "function": functions[phase.function.index()],
                "calls": phase.calls,
                "totalNs": phase.total_ns,
                "selfNs": phase.self_ns,
            })
        });
        json!({
            "number": run.number,
            "parent": run.parent,
            "thread": threads.index_of_tid(run.process, run.thread),
            "function": functions[run.function.index()],
            "beganNs": run.began_ns,
            "durationNs": run.duration_ns,
            "failed": run.failed,
            "leftOpen": run.left_open,
            "unfinished": run.unfinished,
            "attributes": run.attributes,
            "phases": phases.collect::<Vec<_>>(),
        })
    };
    Value::Array(report.runs.iter().map(row).collect())
}
