//! The dump of `cProfile`: a dictionary of functions, each with its figures and its callers.
//!
//! A function is a file, its first line and a name. Times are in seconds; other costs are written unchanged.

use std::collections::HashMap;
use std::io::{self, Write};

use stackweave_profile::{CallStatistics, Function, Measure, NodeId, Profile, Statistics};

use crate::error::ExportError;
use crate::marshal::Marshal;
use crate::source::Source;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let profile = source.profile()?;
    let table = FunctionRows::of(&profile);
    if table.rows.is_empty() {
        return Err(ExportError::Unsupported(
            "the selection has no calls, samples or allocations, and pstats can't read an empty profile".into(),
        ));
    }
    let unit = if profile.measure() == Measure::WallTime { 1e9 } else { 1.0 };
    Ok(table.write(unit, &mut Marshal::new(out))?)
}

/// File, line and name, which identify a function for `pstats`.
type Key = (String, u32, String);

/// Functions by key, in the order in which they were found: functions with equal keys are merged.
#[derive(Default)]
struct FunctionRows {
    indexes: HashMap<Key, usize>,
    rows: Vec<PstatsRow>,
}

struct PstatsRow {
    key: Key,
    statistics: CallStatistics,
    /// The indexes of callers.
    callers: Vec<(usize, CallStatistics)>,
}

impl FunctionRows {
    fn of(profile: &Profile) -> Self {
        let statistics = Statistics::of(profile);
        let mut table = Self::default();
        let indexes: Vec<usize> =
            profile.functions().functions().iter().map(|function| table.index(key(function))).collect();
        for (id, cost) in statistics.functions() {
            add(&mut table.rows[indexes[id.index()]].statistics, cost);
        }
        for edge in statistics.edges() {
            let caller = indexes[edge.caller.index()];
            let callers = &mut table.rows[indexes[edge.callee.index()]].callers;
            match callers.iter_mut().find(|(known, _)| *known == caller) {
                Some((_, known)) => add(known, edge.statistics),
                None => callers.push((caller, edge.statistics)),
            }
        }
        table.add_rest(profile);
        table
    }

    fn index(&mut self, key: Key) -> usize {
        let next = self.rows.len();
        let index = *self.indexes.entry(key.clone()).or_insert(next);
        if index == next {
            self.rows.push(PstatsRow { key, statistics: CallStatistics::default(), callers: Vec::new() });
        }
        index
    }

    /// Adds the cost outside all functions, so that the sum is right.
    fn add_rest(&mut self, profile: &Profile) {
        let cost = profile.tree().node(NodeId::ROOT).cost;
        if cost.self_cost > 0 {
            let index = self.index((NO_FILE.to_owned(), 0, "(unknown)".to_owned()));
            let (calls, self_cost) = (cost.calls, cost.self_cost);
            let rest =
                CallStatistics { calls, primitive_calls: calls, self_cost, total: self_cost, total_of_all: self_cost };
            add(&mut self.rows[index].statistics, rest);
        }
    }

    fn write(&self, unit: f64, out: &mut Marshal<'_>) -> io::Result<()> {
        out.begin_dict()?;
        for PstatsRow { key, statistics, callers } in &self.rows {
            write_key(key, out)?;
            out.tuple(5)?;
            out.integer(statistics.primitive_calls)?;
            out.integer(statistics.calls)?;
            write_costs(*statistics, unit, out)?;
            out.begin_dict()?;
            for (caller, statistics) in callers {
                write_key(&self.rows[*caller].key, out)?;
                out.tuple(4)?;
                // The reverse of the order for functions, as in `cProfile`.
                out.integer(statistics.calls)?;
                out.integer(statistics.primitive_calls)?;
                write_costs(*statistics, unit, out)?;
            }
            out.end_dict()?;
        }
        out.end_dict()
    }
}

fn write_key((file, line, name): &Key, out: &mut Marshal<'_>) -> io::Result<()> {
    out.tuple(3)?;
    out.text(file)?;
    out.integer((*line).into())?;
    out.text(name)
}

#[expect(clippy::cast_precision_loss, reason = "cProfile's times are floats")]
fn write_costs(statistics: CallStatistics, unit: f64, out: &mut Marshal<'_>) -> io::Result<()> {
    out.float(statistics.self_cost as f64 / unit)?;
    out.float(statistics.total as f64 / unit)
}

fn add(to: &mut CallStatistics, other: CallStatistics) {
    to.calls = to.calls.saturating_add(other.calls);
    to.primitive_calls = to.primitive_calls.saturating_add(other.primitive_calls);
    to.self_cost = to.self_cost.saturating_add(other.self_cost);
    to.total = to.total.saturating_add(other.total);
    to.total_of_all = to.total_of_all.saturating_add(other.total_of_all);
}

/// The file of functions without a file, as in `cProfile`.
const NO_FILE: &str = "~";

fn key(function: &Function) -> Key {
    let file = function.filename.as_deref().or(function.module_name().map(|name| &**name));
    let name = function.full_name().to_string();
    match file {
        Some(file) => (file.to_owned(), function.first_line.unwrap_or(0), name),
        None => (NO_FILE.to_owned(), 0, name),
    }
}
