//! The table of a `.prof` file, whoever wrote it, as a graph.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use stackweave_export::{CalledFunction, Calls, GivenGraph};
use stackweave_profile::CallStatistics;

/// File, line and name.
type Key<'py> = (Bound<'py, PyString>, i64, Bound<'py, PyString>);
/// Calls that are no recursion, calls, own and total seconds, and callers.
type Row<'py> = (u64, u64, f64, f64, Bound<'py, PyDict>);
/// Calls, calls that are no recursion, own and total seconds.
type CallerRow = (u64, u64, f64, f64);

/// The functions and calls in a file.
pub(super) fn read_graph(py: Python<'_>, path: &Path) -> PyResult<GivenGraph> {
    let bytes = py.detach(|| fs::read(path))?;
    let table = py.import("marshal")?.call_method1("loads", (PyBytes::new(py, &bytes),))?;
    let not_a_table = |_| PyValueError::new_err("it is not a table of cProfile");
    let title = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let table = table.cast_into::<PyDict>().map_err(PyErr::from).map_err(not_a_table)?;
    graph(&table, title).map_err(not_a_table)
}

fn graph(table: &Bound<'_, PyDict>, title: String) -> PyResult<GivenGraph> {
    let rows: Vec<(Key<'_>, Row<'_>)> =
        table.iter().map(|(key, row)| Ok((key.extract()?, row.extract()?))).collect::<PyResult<_>>()?;
    let mut places = HashMap::with_capacity(rows.len());
    let mut functions = Vec::with_capacity(rows.len());
    for (key, (primitive_calls, calls, own, total, _)) in &rows {
        places.insert(identity(key), functions.len());
        let statistics = statistics((*calls, *primitive_calls, *own, *total));
        let (filename, line, name) = identity(key);
        let line = u32::try_from(line).ok().filter(|line| *line > 0);
        functions.push(CalledFunction { name, filename, line, statistics });
    }
    let mut calls = Vec::new();
    for (callee, (_, (.., callers))) in rows.iter().enumerate() {
        for (caller, row) in callers {
            let Some(caller) = places.get(&identity(&caller.extract()?)) else { continue };
            calls.push(Calls { caller: *caller, callee, statistics: statistics(caller_row(&row)?) });
        }
    }
    add_untimed(&mut functions, &calls);
    Ok(GivenGraph { title, functions, calls })
}

/// A caller that was not timed itself, as it failed or has not ended, took at least as long as what it called.
fn add_untimed(functions: &mut [CalledFunction], calls: &[Calls]) {
    let is_untimed: Vec<bool> =
        functions.iter().map(|function| function.statistics == CallStatistics::default()).collect();
    for call in calls.iter().filter(|call| is_untimed[call.caller]) {
        let total = &mut functions[call.caller].statistics.total;
        *total = total.saturating_add(call.statistics.total);
    }
}

fn identity(key: &Key<'_>) -> (String, i64, String) {
    (key.0.to_string_lossy().into_owned(), key.1, key.2.to_string_lossy().into_owned())
}

/// Old tables have only the number of calls.
fn caller_row(row: &Bound<'_, PyAny>) -> PyResult<CallerRow> {
    row.extract().or_else(|_| row.extract().map(|calls| (calls, calls, 0.0, 0.0)))
}

fn statistics((calls, primitive_calls, own, total): CallerRow) -> CallStatistics {
    let (own, total) = (nanoseconds(own), nanoseconds(total));
    CallStatistics { calls, primitive_calls, own, total, total_of_all: total }
}

#[expect(clippy::cast_possible_truncation, reason = "what no time can be becomes the longest")]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}
