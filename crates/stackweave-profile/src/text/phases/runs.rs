//! Runs: a line for each, and below it what its time went to and what was said about it.

use std::io;

use serde_json::Value;

use super::{Phases, counted, time};
use crate::text::place::name_and_path;
use crate::text::style::{Style, cut, cut_start, printable, width};
use crate::text::values::{percentage, share};
use crate::timing::RunRow;

/// So many phases of a run are named.
const PHASES: usize = 5;
const INDENT: &str = "       ";

impl Phases<'_> {
    pub(super) fn runs(&mut self, limit: Option<usize>) -> io::Result<()> {
        let runs = &self.report.runs;
        let failed = runs.iter().filter(|run| run.failed).count();
        let outer: u64 = runs.iter().filter(|run| run.parent.is_none()).map(|run| run.duration_ns).sum();
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
        let (name, place) = name_and_path(function);
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
        let phases = self.phases_of(run);
        let between = if sizes.is_empty() || phases.is_empty() { "" } else { ": " };
        self.put(Style::Plain, &format!("{}{between}{phases}", sizes.join(", ")))?;
        let (reasons, others): (Vec<_>, Vec<_>) =
            run.attributes.iter().filter(|(_, value)| says_something(value)).partition(|(name, _)| is_reason(name));
        for (name, value) in reasons {
            let style = if name == "error" { Style::Hot } else { Style::Warm };
            self.put(style, &format!("{}: {}", name.replace('_', " "), text(value)))?;
        }
        let others: Vec<String> = others.iter().map(|(name, value)| format!("{name} {}", text(value))).collect();
        self.put(Style::Dim, &others.join(", "))
    }

    fn phases_of(&self, run: &RunRow) -> String {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let phase = |phase: &crate::timing::RunPhase| {
            let name = self.report.functions.function(phase.function).full_name();
            let share = percentage(share(signed(phase.total_ns), signed(run.duration_ns)));
            format!("{name} {} ({share})", time(phase.total_ns))
        };
        let mut named: Vec<String> = run.phases.iter().take(PHASES).map(phase).collect();
        let hidden = run.phases.len().saturating_sub(PHASES);
        if hidden > 0 {
            named.push(format!("{hidden} more"));
        }
        named.join(", ")
    }

    /// A line below a run, cut to the width.
    fn put(&mut self, style: Style, said: &str) -> io::Result<()> {
        if said.is_empty() {
            return Ok(());
        }
        let said = printable(said);
        let left = self.options.width.map(|columns| columns.saturating_sub(INDENT.len()).max(20));
        let said = left.map_or_else(|| said.clone(), |left| cut_end(&said, left));
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
        Value::Bool(_) | Value::Number(_) => true,
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

fn cut_end(said: &str, columns: usize) -> String {
    if width(said) <= columns {
        return said.to_owned();
    }
    said.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}
