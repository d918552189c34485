//! The durations of phases, as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};
use stackweave_profile::timing::{CallerRow, PhaseRow, RunPhase, RunRow, TimingReport};
use stackweave_profile::{CallStatistics, FunctionId, Measure};

use crate::json_values::hidden;
use crate::text::{PhasesOptions, sorted_phases};

/// Writes all runs, and all functions unless only runs are requested. Times are in seconds.
pub(crate) fn write(
    out: &mut dyn Write,
    report: &TimingReport,
    options: &PhasesOptions,
    remarks: &[String],
) -> io::Result<()> {
    let phases = sorted_phases(report, options.sort);
    let mut whole = json!({
        "total": seconds(report.total_ns),
        "hidden": hidden(report.hidden, report.total_ns, Measure::WallTime),
        "runs": report.runs.iter().map(|of| run(report, of)).collect::<Vec<_>>(),
        "unmatched_pops": report.anomalies.unmatched_pops,
        "left_open": report.anomalies.left_open,
        "unfinished": report.anomalies.unfinished,
        "problems": report.problems(),
        "remarks": remarks,
    });
    if !options.only_runs {
        whole["phases"] = phases.into_iter().map(|of| phase(report, of)).collect();
    }
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

fn phase(report: &TimingReport, of: &PhaseRow) -> Value {
    let caller = |caller: &CallerRow| with(named(report, caller.caller), costs(caller.statistics));
    let more = json!({
        "failed": of.failed,
        "left_open": of.left_open,
        "unfinished": of.unfinished,
        "bytecode_count": of.bytecode_count,
        "inline_depth": of.inline_depth.as_ref().map(|depths| [*depths.start(), *depths.end()]),
        "ns_per_bytecode": of.ns_per_bytecode(),
        "callers": of.callers.iter().map(caller).collect::<Vec<_>>(),
    });
    with(with(named(report, of.function), costs(of.statistics)), more)
}

fn run(report: &TimingReport, of: &RunRow) -> Value {
    let phase = |phase: &RunPhase| {
        let name = report.functions.function(phase.function).full_name();
        let [total, self_cost] = [phase.total_ns, phase.self_ns].map(|ns| seconds(ns.cast_signed()));
        json!({"name": &**name, "calls": phase.calls, "total": total, "self": self_cost})
    };
    let more = json!({
        "number": of.number,
        "parent": of.parent,
        "process": of.process,
        "thread": of.thread,
        "thread_name": of.thread_name,
        "began": seconds(of.began_ns.cast_signed()),
        "duration": seconds(of.duration_ns.cast_signed()),
        "failed": of.failed,
        "left_open": of.left_open,
        "unfinished": of.unfinished,
        "attributes": of.attributes,
        "phases": of.phases.iter().map(phase).collect::<Vec<_>>(),
        "phases_count": of.phases_count,
        "deepest": of.deepest,
    });
    with(named(report, of.function), more)
}

fn named(report: &TimingReport, id: FunctionId) -> Value {
    let function = report.functions.function(id);
    json!({"name": &**function.full_name(), "filename": function.filename.as_deref(), "lineno": function.first_line})
}

fn costs(of: CallStatistics) -> Value {
    json!({
        "calls": of.calls,
        "primitive_calls": of.primitive_calls,
        "self": seconds(of.self_cost),
        "total": seconds(of.total),
        "total_of_all": seconds(of.total_of_all),
    })
}

/// Merges two objects.
fn with(mut to: Value, more: Value) -> Value {
    if let (Value::Object(to), Value::Object(more)) = (&mut to, more) {
        to.extend(more);
    }
    to
}

#[expect(clippy::cast_precision_loss, reason = "a double holds some weeks to the nanosecond")]
fn seconds(ns: i64) -> Value {
    json!(ns as f64 / 1e9)
}
