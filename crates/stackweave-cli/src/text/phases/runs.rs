//! Runs: one line for each, and below it its phases and attributes.

use std::io;

use serde_json::Value;
use stackweave_profile::timing::{RunPhase, RunRow};

use super::{PhasesText, counted, time};
use crate::text::location::name_and_path;
use crate::text::style::{Style, cut, cut_start, printable, width};
use crate::text::values::{percentage, share};

/// The number of phases of a run that are named.
const PHASES: usize = 5;
/// The maximum number of lines for one attribute.
const LINES: usize = 6;
const INDENT: &str = "       ";

impl PhasesText<'_> {
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
        let (name, location) = name_and_path(function, None);
        let (state, style) = state(run);
        let start = format!("{:>numbers$}  {:>8}  {state:<6}  ", run.number, time(run.duration_ns));
        let left = self.options.width.map(|columns| columns.saturating_sub(width(&start)).max(20));
        let name = left.map_or_else(|| name.clone(), |left| cut(&name, left));
        let left = left.map(|left| left.saturating_sub(width(&name) + 2));
        let location = match left {
            Some(left) if left < 8.min(width(&location)) => String::new(),
            Some(left) => cut_start(&location, left),
            None => location,
        };
        let mut line = format!("{:>numbers$}  {:>8}  ", run.number, time(run.duration_ns));
        style.put(&mut line, &format!("{state:<6}"), colour);
        line.push_str("  ");
        line.push_str(&name);
        if !location.is_empty() {
            line.push_str("  ");
            Style::Dim.put(&mut line, &location, colour);
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
            run.attributes.iter().filter(|(_, value)| has_content(value)).partition(|(name, _)| is_reason(name));
        for (name, value) in reasons {
            let style = if name == "error" { Style::Hot } else { Style::Warm };
            let message = format!("{}: {}", name.replace('_', " "), text(value));
            self.put_wrapped(style, &message.split_whitespace().map(str::to_owned).collect::<Vec<_>>())?;
        }
        let function = self.report.functions.function(run.function);
        let is_known = |text: &str| {
            text.len() > 2 && (function.full_name().contains(text) || function.filename.as_deref() == Some(text))
        };
        let others = others.into_iter().filter(|(_, value)| !is_known(&text(value)));
        let others: Vec<String> = others.map(|(name, value)| format!("{name} {}", text(value))).collect();
        self.put_wrapped(Style::Dim, &with_commas(others))
    }

    /// Returns the phases with the highest self time.
    fn phases_of(&self, run: &RunRow) -> Vec<String> {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let mut phases: Vec<&RunPhase> = run.phases.iter().filter(|phase| phase.self_ns > 0).collect();
        phases.sort_by_key(|phase| core::cmp::Reverse(phase.self_ns));
        let named = |phase: &&RunPhase| {
            let name = self.report.functions.function(phase.function).full_name();
            let share = percentage(share(signed(phase.self_ns), signed(run.duration_ns)));
            format!("{name} {} ({share})", time(phase.self_ns))
        };
        let mut list: Vec<String> = phases.iter().take(PHASES).map(named).collect();
        let hidden = phases.len().saturating_sub(PHASES);
        if hidden > 0 {
            list.push(format!("{hidden} more"));
        }
        list
    }

    /// Writes the texts below a run, as many per line as fit.
    fn put_wrapped(&mut self, style: Style, texts: &[String]) -> io::Result<()> {
        let mut line = String::new();
        let mut lines = 1;
        for text in texts {
            let is_full = self.room().is_some_and(|room| width(&line) + 1 + width(text) > room);
            if is_full && !line.is_empty() && lines < LINES {
                self.put(style, &core::mem::take(&mut line))?;
                lines += 1;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(text);
        }
        self.put(style, &line)
    }

    /// Returns the maximum width of a line below a run.
    fn room(&self) -> Option<usize> {
        self.options.width.map(|columns| columns.saturating_sub(INDENT.len()).max(20))
    }

    /// Writes a line below a run, cut to the width.
    fn put(&mut self, style: Style, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let text = printable(text);
        let text = self.room().map_or_else(|| text.clone(), |left| cut_end(&text, left));
        let mut line = String::from(INDENT);
        style.put(&mut line, &text, self.options.colour);
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

fn has_content(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(is_so) => *is_so,
        Value::Number(number) => number.as_f64() != Some(0.0),
    }
}

/// Returns a value as text: strings without quotes, lists with commas.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
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

fn cut_end(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}
