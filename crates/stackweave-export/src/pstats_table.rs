//! Reads the table of a `.prof` file as a graph.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_profile::CallStatistics;

use crate::external_graph::{ExternalCalls, ExternalFunction, ExternalGraph};
use crate::marshal_reader::{Value, read};

/// File, line and name.
type Key = (Arc<str>, i64, Arc<str>);

impl ExternalGraph {
    /// Returns the functions and calls of a table that `cProfile` or an export has written; `None` for any other bytes.
    #[must_use]
    pub fn of_pstats(bytes: &[u8], title: String) -> Option<Self> {
        let Value::Dictionary(table) = read(bytes)? else { return None };
        let mut indexes = HashMap::new();
        let (mut functions, mut callers) = (Vec::new(), Vec::new());
        for (function, row) in &*table {
            let key = key(function)?;
            let Value::Tuple(row) = row else { return None };
            let [primitive_calls, calls, self_cost, total, Value::Dictionary(called_by)] = &**row else { return None };
            let line = u32::try_from(key.1).ok().filter(|line| *line > 0);
            functions.push(ExternalFunction {
                name: key.2.to_string(),
                filename: key.0.to_string(),
                line,
                statistics: statistics([calls, primitive_calls, self_cost, total])?,
            });
            callers.push(called_by);
            indexes.insert(key, functions.len() - 1);
        }
        let mut calls = Vec::new();
        for (callee, called_by) in callers.into_iter().enumerate() {
            for (caller, row) in &**called_by {
                let Some(caller) = indexes.get(&key(caller)?) else { continue };
                calls.push(ExternalCalls { caller: *caller, callee, statistics: caller_row(row)? });
            }
        }
        add_untimed(&mut functions, &calls);
        Some(Self { title, functions, calls })
    }
}

/// Corrects callers without a time, because they failed or have not ended: they took at least as long as their callees.
fn add_untimed(functions: &mut [ExternalFunction], calls: &[ExternalCalls]) {
    let is_untimed: Vec<bool> =
        functions.iter().map(|function| function.statistics == CallStatistics::default()).collect();
    for call in calls.iter().filter(|call| is_untimed[call.caller]) {
        let total = &mut functions[call.caller].statistics.total;
        *total = total.saturating_add(call.statistics.total);
    }
}

fn key(value: &Value) -> Option<Key> {
    let Value::Tuple(parts) = value else { return None };
    let [Value::Text(file), Value::Integer(line), Value::Text(name)] = &**parts else { return None };
    Some((Arc::clone(file), *line, Arc::clone(name)))
}

/// Returns the figures of a caller. Old tables have only the number of calls.
fn caller_row(row: &Value) -> Option<CallStatistics> {
    match row {
        Value::Tuple(row) => {
            let [calls, primitive_calls, self_cost, total] = &**row else { return None };
            statistics([calls, primitive_calls, self_cost, total])
        }
        calls => statistics([calls, calls, &Value::Integer(0), &Value::Integer(0)]),
    }
}

fn statistics([calls, primitive_calls, self_cost, total]: [&Value; 4]) -> Option<CallStatistics> {
    let (self_cost, total) = (nanoseconds(self_cost)?, nanoseconds(total)?);
    let (calls, primitive_calls) = (count(calls)?, count(primitive_calls)?);
    Some(CallStatistics { calls, primitive_calls, self_cost, total, total_of_all: total })
}

fn count(value: &Value) -> Option<u64> {
    let Value::Integer(number) = value else { return None };
    u64::try_from(*number).ok()
}

#[expect(clippy::cast_possible_truncation, reason = "invalid times are clamped")]
#[expect(clippy::cast_precision_loss, reason = "such long times need no nanoseconds")]
fn nanoseconds(value: &Value) -> Option<i64> {
    let seconds = match value {
        Value::Float(seconds) => *seconds,
        Value::Integer(seconds) => *seconds as f64,
        _ => return None,
    };
    Some((seconds * 1e9).round() as i64)
}
