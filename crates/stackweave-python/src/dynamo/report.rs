//! Converts timings by function, and by function and caller, to Python objects.

use core::hash::{Hash as _, Hasher as _};
use std::hash::DefaultHasher;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use stackweave_cli::text::timed_calls_table;
use stackweave_profile::{CallStatistics, TimedCall, TimedCalls, is_edge_open};

use super::function_numbers::FunctionNumbers;
use super::open_functions::function_key;

/// The fields of a timing, which may be an instance of torch's class.
#[derive(FromPyObject)]
struct TimingFields<'py> {
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

pub(super) struct DynamoReport<'py> {
    py: Python<'py>,
    functions: FunctionNumbers<'py>,
    calls: TimedCalls,
}

impl<'py> DynamoReport<'py> {
    pub(super) fn of(timings: &Bound<'py, PyList>) -> PyResult<Self> {
        let py = timings.py();
        let mut report = Self { py, functions: FunctionNumbers::new(py), calls: TimedCalls::default() };
        for timing in timings {
            let call = report.call(&timing.extract()?)?;
            report.calls.add(&call);
        }
        Ok(report)
    }

    fn call(&mut self, timing: &TimingFields<'py>) -> PyResult<TimedCall> {
        let mut call = TimedCall {
            function: self.functions.number(&timing.filename, timing.firstlineno, &timing.func_name)?,
            caller: None,
            self_ns: timing.tottime_ns,
            total_ns: timing.cumtime_ns,
            is_primitive: timing.is_primitive_call,
            is_primitive_edge: timing.is_primitive_call,
        };
        let Some(file) = &timing.caller_filename else { return Ok(call) };
        let name = timing.caller_func_name.clone().unwrap_or_else(|| PyString::new(self.py, ""));
        let line = timing.caller_firstlineno.unwrap_or(0);
        call.caller = Some(self.functions.number(file, line, &name)?);
        if !call.is_primitive {
            let caller = function_key(name, file.clone(), line)?;
            let function = function_key(timing.func_name.clone(), timing.filename.clone(), timing.firstlineno)?;
            let matches = |open: Bound<'py, PyAny>| Ok((open.eq(&caller)?, open.eq(&function)?));
            let stack = timing.call_stack.iter().map(matches).collect::<PyResult<Vec<_>>>()?;
            call.is_primitive_edge = !is_edge_open(stack);
        }
        Ok(call)
    }

    /// Returns the table that `pstats` reads. It also has callers without timings, because readers look them up.
    pub(super) fn table(&self) -> PyResult<Bound<'py, PyDict>> {
        let table = PyDict::new(self.py);
        for (function, row) in self.calls.functions() {
            let callers = PyDict::new(self.py);
            for (caller, edge) in row.callers() {
                let CallStatistics { calls, primitive_calls, self_cost, total, .. } = *edge;
                callers.set_item(
                    self.functions.get(*caller),
                    (calls, primitive_calls, seconds(self_cost), seconds(total)),
                )?;
            }
            let CallStatistics { calls, primitive_calls, self_cost, total, .. } = *row.cost();
            let row = (primitive_calls, calls, seconds(self_cost), seconds(total), callers);
            table.set_item(self.functions.get(*function), row)?;
        }
        for caller in self.calls.untimed_callers() {
            table.set_item(self.functions.get(caller), (0, 0, 0.0, 0.0, PyDict::new(self.py)))?;
        }
        Ok(table)
    }

    /// Returns, by function and caller: calls, primitive calls, self time, cumulative time as `cProfile` counts it, and cumulative
    /// time of all calls.
    pub(super) fn edges(&self) -> PyResult<Bound<'py, PyDict>> {
        let edges = PyDict::new(self.py);
        for (function, row) in self.calls.functions() {
            let callers = PyDict::new(self.py);
            for (caller, edge) in row.callers() {
                let CallStatistics { calls, primitive_calls, self_cost, total, total_of_all } = *edge;
                let times = (seconds(self_cost), seconds(total), seconds(total_of_all));
                callers.set_item(self.functions.get(*caller), (calls, primitive_calls, times.0, times.1, times.2))?;
            }
            edges.set_item(self.functions.get(*function), callers)?;
        }
        Ok(edges)
    }

    /// Returns the table of functions that torch prints.
    pub(super) fn text(&self) -> PyResult<String> {
        Ok(timed_calls_table(&self.calls, &self.functions.names()?))
    }

    /// Returns a hash of the content, which shows whether the report has changed.
    pub(super) fn content_hash(&self) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.calls.hash(&mut hasher);
        for key in self.functions.iter() {
            hasher.write_isize(key.hash()?);
        }
        Ok(hasher.finish())
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of pstats are floats")]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
