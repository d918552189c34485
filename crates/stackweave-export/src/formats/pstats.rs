//! What `cProfile` dumps: a dictionary of functions, each with its numbers and its callers.
//!
//! A function is a file, the line that it begins on and a name. Times are seconds; other costs stand there as they are.

use std::collections::HashMap;
use std::io::{self, Write};

use stackweave_profile::{CallStatistics, Function, Measure, NodeId, Profile, Statistics};

use crate::error::ExportError;
use crate::marshal::Marshal;
use crate::source::Source;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let profile = source.profile()?;
    let table = Table::of(&profile);
    if table.rows.is_empty() {
        return Err(ExportError::NotThis(
            "nothing was called, sampled or allocated, and pstats reads no empty profile".into(),
        ));
    }
    let unit = if profile.measure() == Measure::WallTime { 1e9 } else { 1.0 };
    Ok(table.write(unit, &mut Marshal::new(out))?)
}

/// File, line and name, which are all that `pstats` knows of a function.
type Key = (String, u32, String);

/// Functions by key, in the order in which they were found: functions that `pstats` can't tell apart are one.
#[derive(Default)]
struct Table {
    places: HashMap<Key, usize>,
    rows: Vec<Row>,
}

struct Row {
    key: Key,
    statistics: CallStatistics,
    /// The places of callers.
    callers: Vec<(usize, CallStatistics)>,
}

impl Table {
    fn of(profile: &Profile) -> Self {
        let statistics = Statistics::of(profile);
        let mut table = Self::default();
        let places: Vec<usize> =
            profile.functions().functions().iter().map(|function| table.place(key(function))).collect();
        for (id, cost) in statistics.functions() {
            add(&mut table.rows[places[id.index()]].statistics, cost);
        }
        for edge in statistics.edges() {
            let caller = places[edge.caller.index()];
            let callers = &mut table.rows[places[edge.callee.index()]].callers;
            match callers.iter_mut().find(|(known, _)| *known == caller) {
                Some((_, known)) => add(known, edge.statistics),
                None => callers.push((caller, edge.statistics)),
            }
        }
        table.add_rest(profile);
        table
    }

    fn place(&mut self, key: Key) -> usize {
        let next = self.rows.len();
        let place = *self.places.entry(key.clone()).or_insert(next);
        if place == next {
            self.rows.push(Row { key, statistics: CallStatistics::default(), callers: Vec::new() });
        }
        place
    }

    /// What belongs to no function, so that the sum is right.
    fn add_rest(&mut self, profile: &Profile) {
        let cost = profile.tree().node(NodeId::ROOT).cost;
        if cost.own > 0 {
            let place = self.place((NO_FILE.to_owned(), 0, "(unknown)".to_owned()));
            let (calls, own) = (cost.calls, cost.own);
            let rest = CallStatistics { calls, primitive_calls: calls, own, total: own, total_of_all: own };
            add(&mut self.rows[place].statistics, rest);
        }
    }

    fn write(&self, unit: f64, out: &mut Marshal<'_>) -> io::Result<()> {
        out.begin_dict()?;
        for Row { key, statistics, callers } in &self.rows {
            write_key(key, out)?;
            out.tuple(5)?;
            out.integer(statistics.primitive_calls)?;
            out.integer(statistics.calls)?;
            write_costs(*statistics, unit, out)?;
            out.begin_dict()?;
            for (caller, statistics) in callers {
                write_key(&self.rows[*caller].key, out)?;
                out.tuple(4)?;
                // The other way round than for functions: so does cProfile.
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
    out.float(statistics.own as f64 / unit)?;
    out.float(statistics.total as f64 / unit)
}

fn add(to: &mut CallStatistics, other: CallStatistics) {
    to.calls = to.calls.saturating_add(other.calls);
    to.primitive_calls = to.primitive_calls.saturating_add(other.primitive_calls);
    to.own = to.own.saturating_add(other.own);
    to.total = to.total.saturating_add(other.total);
    to.total_of_all = to.total_of_all.saturating_add(other.total_of_all);
}

/// What `cProfile` says instead of a file where there is none.
const NO_FILE: &str = "~";

fn key(function: &Function) -> Key {
    let file = function.filename.as_deref().or(function.module_name().map(|name| &**name));
    let name = function.full_name().to_string();
    match file {
        Some(file) => (file.to_owned(), function.first_line.unwrap_or(0), name),
        None => (NO_FILE.to_owned(), 0, name),
    }
}
