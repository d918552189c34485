//! Runs: a line for each, and below it what its time went to and what was said about it.

use std::io;

use serde_json::Value;
use stackweave_profile::timing::{RunPhase, RunRow};

use super::{Phases, counted, time};
use crate::text::place::name_and_path;
use crate::text::style::{Style, cut, cut_start, printable, width};
use crate::text::values::{percentage, share};

/// So many phases of a run are named.
const PHASES: usize = 5;
/// One thing that is said takes so many lines.
const LINES: usize = 6;
const INDENT: &str = "       ";

impl Phases<'_> {
    pub(super) fn runs(&mut self, limit: Option<usize>) -> io::Result<()> {
        let runs = &self.report.runs;
        let failed = runs.iter().filter(|run| run.failed).count();
        let outer: u64 =
            runs.iter().filter(|run| run.parent.is_none()).map(|run| run.duration_ns).fold(0, u64::saturating_add);
        let mut more = format!("{}, {}", counted(runs.len(), "run", "runs"), time(outer));
        if failed > 0 {
            more = format!("{more}, {failed} failed");
        }
        self.head("Runs", &more)?;
        let shown = limit.unwrap_or(runs.len());
        let numbers = runs.len().to_string().len().max(2);
        for run in runs.iter().take(shown) {
            self.run(run, numbers)?;
        }
        let hidden = runs.len().saturating_sub(shown);
        if hidden > 0 { writeln!(self.out, "({hidden} more: --runs shows them)") } else { Ok(()) }
    }

    fn run(&mut self, run: &RunRow, numbers: usize) -> io::Result<()> {
        let colour = self.options.colour;
        let function = self.report.functions.function(run.function);
        let (name, place) = name_and_path(function, None);
        let (state, style) = state(run);
        let start = format!("{:>numbers$}  {:>8}  {state:<6}  ", run.number, time(run.duration_ns));
        let left = self.options.width.map(|columns| columns.saturating_sub(width(&start)).max(20));
        let name = left.map_or_else(|| name.clone(), |left| cut(&name, left));
        let left = left.map(|left| left.saturating_sub(width(&name) + 2));
        let place = match left {
            Some(left) if left < 8.min(width(&place)) => String::new(),
            Some(left) => cut_start(&place, left),
            None => place,
        };
        let mut line = format!("{:>numbers$}  {:>8}  ", run.number, time(run.duration_ns));
        style.put(&mut line, &format!("{state:<6}"), colour);
        line.push_str("  ");
        line.push_str(&name);
        if !place.is_empty() {
            line.push_str("  ");
            Style::Dim.put(&mut line, &place, colour);
        }
        writeln!(self.out, "{}", line.trim_end())?;
        self.below(run)
    }

    fn below(&mut self, run: &RunRow) -> io::Result<()> {
        let mut sizes = Vec::new();
        if let Some(parent) = run.parent {
            sizes.push(format!("in run {parent}"));
        }
        if run.phases_count > 0 {
            let count = usize::try_from(run.phases_count).unwrap_or(usize::MAX);
            sizes.push(format!("{}, {} deep", counted(count, "phase", "phases"), run.deepest));
        }
        let mut phases = self.phases_of(run);
        let sizes = sizes.join(", ");
        match phases.first_mut() {
            Some(first) if !sizes.is_empty() => *first = format!("{sizes}: {first}"),
            Some(_) => {}
            None => phases.push(sizes),
        }
        self.put_wrapped(Style::Plain, &with_commas(phases))?;
        let (reasons, others): (Vec<_>, Vec<_>) =
            run.attributes.iter().filter(|(_, value)| says_something(value)).partition(|(name, _)| is_reason(name));
        for (name, value) in reasons {
            let style = if name == "error" { Style::Hot } else { Style::Warm };
            let said = format!("{}: {}", name.replace('_', " "), text(value));
            self.put_wrapped(style, &said.split_whitespace().map(str::to_owned).collect::<Vec<_>>())?;
        }
        let function = self.report.functions.function(run.function);
        let is_told = |said: &str| {
            said.len() > 2 && (function.full_name().contains(said) || function.filename.as_deref() == Some(said))
        };
        let others = others.into_iter().filter(|(_, value)| !is_told(&text(value)));
        let others: Vec<String> = others.map(|(name, value)| format!("{name} {}", text(value))).collect();
        self.put_wrapped(Style::Dim, &with_commas(others))
    }

    /// The phases that took most of the time themselves.
    fn phases_of(&self, run: &RunRow) -> Vec<String> {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let mut phases: Vec<&RunPhase> = run.phases.iter().filter(|phase| phase.own_ns > 0).collect();
        phases.sort_by_key(|phase| core::cmp::Reverse(phase.own_ns));
        let named = |phase: &&RunPhase| {
            let name = self.report.functions.function(phase.function).full_name();
            let share = percentage(share(signed(phase.own_ns), signed(run.duration_ns)));
            format!("{name} {} ({share})", time(phase.own_ns))
        };
        let mut list: Vec<String> = phases.iter().take(PHASES).map(named).collect();
        let hidden = phases.len().saturating_sub(PHASES);
        if hidden > 0 {
            list.push(format!("{hidden} more"));
        }
        list
    }

    /// Lines below a run, with as many of these as fit into each.
    fn put_wrapped(&mut self, style: Style, pieces: &[String]) -> io::Result<()> {
        let mut line = String::new();
        let mut lines = 1;
        for piece in pieces {
            let is_full = self.room().is_some_and(|room| width(&line) + 1 + width(piece) > room);
            if is_full && !line.is_empty() && lines < LINES {
                self.put(style, &core::mem::take(&mut line))?;
                lines += 1;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(piece);
        }
        self.put(style, &line)
    }

    /// How many columns a line below a run may have.
    fn room(&self) -> Option<usize> {
        self.options.width.map(|columns| columns.saturating_sub(INDENT.len()).max(20))
    }

    /// A line below a run, cut to the width.
    fn put(&mut self, style: Style, said: &str) -> io::Result<()> {
        if said.is_empty() {
            return Ok(());
        }
        let said = printable(said);
        let said = self.room().map_or_else(|| said.clone(), |left| cut_end(&said, left));
        let mut line = String::from(INDENT);
        style.put(&mut line, &said, self.options.colour);
        writeln!(self.out, "{line}")
    }
}

fn state(run: &RunRow) -> (&'static str, Style) {
    match run {
        RunRow { failed: true, .. } => ("failed", Style::Hot),
        RunRow { unfinished: true, .. } => ("no end", Style::Warm),
        RunRow { left_open: true, .. } => ("left", Style::Warm),
        _ => ("done", Style::Good),
    }
}

fn is_reason(name: &str) -> bool {
    name == "error" || name.contains("reason")
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(is_so) => *is_so,
        Value::Number(number) => number.as_f64() != Some(0.0),
    }
}

/// A value as people read it: texts without quotes, lists with commas.
fn text(value: &Value) -> String {
    match value {
        Value::String(said) => said.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn with_commas(mut items: Vec<String>) -> Vec<String> {
    let last = items.len().saturating_sub(1);
    for item in &mut items[..last] {
        item.push(',');
    }
    items
}

fn cut_end(said: &str, columns: usize) -> String {
    if width(said) <= columns {
        return said.to_owned();
    }
    said.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}
