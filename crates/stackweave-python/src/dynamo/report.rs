//! Timings by function, and by function and caller.
//!
//! Functions have torch's numbers. The time of an edge is what `cProfile` says: a call from a caller is not counted again while
//! another such call is open. torch adds up all calls, so that a recursion counts as often as it is deep.

use core::hash::Hasher as _;
use std::hash::DefaultHasher;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use stackweave_profile::CallStatistics;

use super::keyed::Keyed;
use super::open_places::place;

/// A timing as it is told: by our class, or by torch's own.
#[derive(FromPyObject)]
struct Told<'py> {
    func_name: Bound<'py, PyString>,
    filename: Bound<'py, PyString>,
    firstlineno: i64,
    cumtime_ns: i64,
    tottime_ns: i64,
    caller_func_name: Option<Bound<'py, PyString>>,
    caller_filename: Option<Bound<'py, PyString>>,
    caller_firstlineno: Option<i64>,
    is_primitive_call: bool,
    call_stack: Bound<'py, PyTuple>,
}

pub(super) struct FunctionRow<'py> {
    pub(super) cost: CallStatistics,
    callers: Keyed<'py, CallStatistics>,
}

pub(super) struct Report<'py> {
    py: Python<'py>,
    functions: Keyed<'py, FunctionRow<'py>>,
    pub(super) timings: usize,
}

impl<'py> Report<'py> {
    pub(super) fn of(timings: &Bound<'py, PyList>) -> PyResult<Self> {
        let py = timings.py();
        let mut report = Self { py, functions: Keyed::new(py), timings: 0 };
        for timing in timings {
            report.add(&timing.extract()?)?;
            report.timings += 1;
        }
        Ok(report)
    }

    fn add(&mut self, told: &Told<'py>) -> PyResult<()> {
        let py = self.py;
        let function = key(&told.filename, told.firstlineno, &told.func_name)?;
        let new = || FunctionRow { cost: CallStatistics::default(), callers: Keyed::new(py) };
        let row = self.functions.of(function, new)?;
        count(&mut row.cost, told, told.is_primitive_call);
        let Some(file) = &told.caller_filename else { return Ok(()) };
        let (name, line) = (caller_name(py, told), told.caller_firstlineno.unwrap_or(0));
        let edge = row.callers.of(key(file, line, &name)?, CallStatistics::default)?;
        let is_outermost = told.is_primitive_call || !is_edge_open(told, &name, file, line)?;
        count(edge, told, is_outermost);
        Ok(())
    }

    /// The functions that were timed: file, line and name, with what they cost.
    pub(super) fn functions(&self) -> &[(Bound<'py, PyTuple>, FunctionRow<'py>)] {
        self.functions.rows()
    }

    /// The table that `pstats` reads. Callers that were not timed themselves are there as well: readers look them up.
    pub(super) fn table(&self) -> PyResult<Bound<'py, PyDict>> {
        let table = PyDict::new(self.py);
        for (function, row) in self.functions() {
            let callers = PyDict::new(self.py);
            for (caller, edge) in row.callers.rows() {
                let CallStatistics { calls, primitive_calls, own, total, .. } = *edge;
                callers.set_item(caller, (calls, primitive_calls, seconds(own), seconds(total)))?;
            }
            let CallStatistics { calls, primitive_calls, own, total, .. } = row.cost;
            table.set_item(function, (primitive_calls, calls, seconds(own), seconds(total), callers))?;
        }
        for (caller, _) in self.functions().iter().flat_map(|(_, row)| row.callers.rows()) {
            if !self.functions.has(caller)? {
                table.set_item(caller, (0, 0, 0.0, 0.0, PyDict::new(self.py)))?;
            }
        }
        Ok(table)
    }

    /// By function and caller: calls, those that are no recursion, own time, time as `cProfile` counts it and of all calls.
    pub(super) fn edges(&self) -> PyResult<Bound<'py, PyDict>> {
        let edges = PyDict::new(self.py);
        for (function, row) in self.functions() {
            let callers = PyDict::new(self.py);
            for (caller, edge) in row.callers.rows() {
                let CallStatistics { calls, primitive_calls, own, total, total_of_all } = *edge;
                let times = (seconds(own), seconds(total), seconds(total_of_all));
                callers.set_item(caller, (calls, primitive_calls, times.0, times.1, times.2))?;
            }
            edges.set_item(function, callers)?;
        }
        Ok(edges)
    }

    /// A number that says whether anything has changed.
    pub(super) fn content(&self) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        let mut add = |key: &Bound<'py, PyTuple>, cost: &CallStatistics| {
            hasher.write_isize(key.hash()?);
            hasher.write_u64(cost.calls);
            hasher.write_u64(cost.primitive_calls);
            hasher.write_i64(cost.own);
            hasher.write_i64(cost.total);
            PyResult::Ok(())
        };
        for (function, row) in self.functions() {
            add(function, &row.cost)?;
            row.callers.rows().iter().try_for_each(|(caller, edge)| add(caller, edge))?;
        }
        Ok(hasher.finish())
    }
}

/// A function as `pstats` knows it.
fn key<'py>(file: &Bound<'py, PyString>, line: i64, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyTuple>> {
    (file, line, name).into_pyobject(file.py())
}

fn caller_name<'py>(py: Python<'py>, told: &Told<'py>) -> Bound<'py, PyString> {
    told.caller_func_name.clone().unwrap_or_else(|| PyString::new(py, ""))
}

fn count(cost: &mut CallStatistics, told: &Told<'_>, is_outermost: bool) {
    cost.calls += 1;
    cost.own = cost.own.saturating_add(told.tottime_ns);
    cost.total_of_all = cost.total_of_all.saturating_add(told.cumtime_ns);
    if is_outermost {
        cost.primitive_calls += 1;
        cost.total = cost.total.saturating_add(told.cumtime_ns);
    }
}

/// Whether the caller had called the function before, in a call that was still open. Of a recursion whose stack is not known
/// this is taken for granted: what is counted twice can't be told later.
fn is_edge_open<'py>(
    told: &Told<'py>,
    name: &Bound<'py, PyString>,
    file: &Bound<'py, PyString>,
    line: i64,
) -> PyResult<bool> {
    let caller = place(name.clone(), file.clone(), line)?;
    let function = place(told.func_name.clone(), told.filename.clone(), told.firstlineno)?;
    let mut was_caller = false;
    for open in &told.call_stack {
        if was_caller && open.eq(&function)? {
            return Ok(true);
        }
        was_caller = open.eq(&caller)?;
    }
    Ok(told.call_stack.is_empty())
}

#[expect(clippy::cast_precision_loss, reason = "seconds of pstats are floats")]
pub(super) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
