//! `phases()` and `runs()`: the timings in recordings.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use stackweave_cli::text::{PhaseSort, PhasesOptions, sorted_phases, write_hidden, write_phases};
use stackweave_profile::timing::{PhaseRow, RunRow, TimingReport, read_timing};
use stackweave_profile::{CallStatistics, FunctionId};

use super::hidden::ALL;
use super::named_process::symbolizer;
use super::profile::{ProfileOptions, aggregate_options};
use super::{OpenedRecording, RecordingPart, seconds};
use crate::errors::Error;

/// The options of the text.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PhasesRequest {
    sort: String,
    limit: Option<usize>,
    runs: bool,
    width: Option<usize>,
}

/// Returns the timings of the requested phases.
pub(super) fn report(
    py: Python<'_>,
    opened: &OpenedRecording,
    selection: &RecordingPart,
    options: &ProfileOptions,
) -> PyResult<TimingReport> {
    let view = options.view()?;
    let chosen = opened.with_chosen(selection)?;
    let options = aggregate_options(opened, &chosen, selection, options)?;
    let symbolizer = symbolizer()?;
    let read = py.detach(|| read_timing(chosen.processes(), &options, &view, Some(symbolizer), &mut |_| {}));
    let mut report = read.map_err(Error::from)?;
    // The times of a report begin with its first process, the times in Python with the first process of the recording.
    let first = chosen.processes().iter().map(|process| opened.offset_of(process)).min().unwrap_or(0);
    for run in &mut report.runs {
        run.began_ns = run.began_ns.saturating_add_signed(first);
    }
    Ok(report)
}

/// Returns a row for each function, in the order of the fields of `PhaseCost`, by self time in descending order.
pub(super) fn phases<'py>(py: Python<'py>, report: &TimingReport) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for row in sorted_phases(report, PhaseSort::SelfCost) {
        rows.append(phase(py, report, row)?)?;
    }
    Ok(rows)
}

fn phase<'py>(py: Python<'py>, report: &TimingReport, row: &PhaseRow) -> PyResult<Bound<'py, PyTuple>> {
    let depths = row.inline_depth.as_ref().map(|depths| (*depths.start(), *depths.end()));
    let caller = |caller: &stackweave_profile::timing::CallerRow| {
        joined(py, location(report, caller.caller), costs(caller.statistics))
    };
    let callers = PyTuple::new(py, row.callers.iter().map(caller).collect::<PyResult<Vec<_>>>()?)?;
    let costs = joined(py, location(report, row.function), costs(row.statistics))?;
    let more = (row.failed, row.left_open, row.bytecode_count, depths, row.ns_per_bytecode(), callers);
    joined(py, costs, more)
}

/// Returns a row for each run, in the order of the fields of `Run`: its attributes as JSON, its phases as pairs.
pub(super) fn runs<'py>(py: Python<'py>, report: &TimingReport) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for run in &report.runs {
        rows.append(row_of_run(py, report, run)?)?;
    }
    Ok(rows)
}

fn row_of_run<'py>(py: Python<'py>, report: &TimingReport, run: &RunRow) -> PyResult<Bound<'py, PyTuple>> {
    let named = |phase: &stackweave_profile::timing::RunPhase| {
        (&**report.functions.function(phase.function).full_name(), seconds(phase.total_ns.cast_signed()))
    };
    let phases: Vec<(&str, f64)> = run.phases.iter().map(named).collect();
    let (began, duration) = (seconds(run.began_ns.cast_signed()), seconds(run.duration_ns.cast_signed()));
    let identity = joined(py, (run.number,), location(report, run.function))?;
    let outcome = (began, duration, run.failed, run.unfinished, run.attributes_json(), phases);
    joined(py, joined(py, identity, outcome)?, (run.thread, run.process, run.parent))
}

/// Returns the text of `stackweave phases`.
pub(super) fn text(report: &TimingReport, request: &PhasesRequest) -> PyResult<String> {
    let sort = match &*request.sort {
        "self" => PhaseSort::SelfCost,
        "total" => PhaseSort::Total,
        "calls" => PhaseSort::Calls,
        "failed" => PhaseSort::Failed,
        other => {
            let message = format!("sort must be one of self, total, calls, failed, but is {other:?}");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
    };
    let (limit, only_runs, width) = (request.limit, request.runs, request.width);
    let options = PhasesOptions { sort, limit, only_runs, width, colour: false };
    let mut text = Vec::new();
    let hidden = report.hidden_sentence(ALL).filter(|_| !only_runs);
    let written = write_phases(&mut text, report, &options).and_then(|()| write_hidden(&mut text, hidden));
    written.map_err(|error| Error::other(error.to_string()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the function, file and line.
fn location(report: &TimingReport, id: FunctionId) -> (&str, Option<&str>, Option<u32>) {
    let function = report.functions.function(id);
    (function.full_name(), function.filename.as_deref(), function.first_line)
}

/// Returns calls, primitive calls, self time, total time and the total of all calls.
fn costs(of: CallStatistics) -> (u64, u64, f64, f64, f64) {
    (of.calls, of.primitive_calls, seconds(of.self_cost), seconds(of.total), seconds(of.total_of_all))
}

/// Concatenates two tuples.
fn joined<'py>(
    py: Python<'py>,
    one: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
    other: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let one = one.into_pyobject(py).map_err(Into::into)?;
    let other = other.into_pyobject(py).map_err(Into::into)?;
    PyTuple::new(py, one.iter().chain(other.iter()).collect::<Vec<_>>())
}
