//! The stack of a real program: Python, torch and their libraries, from several builds without frame pointers.
//!
//! Python builds the stack, and calls this library in its innermost frame.

use std::io::{self, Write};
use std::iter;
use std::process::Command;

use super::stage::{self, Code, Scene};
use crate::options::Effort;
use crate::own_library;
use crate::peers::{self, Unwinder, torch};
use crate::report::{Case, Entry, Outcome, json};
use crate::statistics::median;

const SCRIPT: &str = include_str!("../../python/real_stack.py");

/// The description that one process gives of its stack, and its results by name.
#[derive(Debug)]
struct ReportedFigure {
    stack: String,
    outcomes: Vec<(String, Outcome)>,
}

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    let runs = iter::repeat_with(|| in_python(effort.pick(11, 41))).take(effort.pick(1, 5));
    let reported = match runs.collect::<Result<Vec<_>, _>>() {
        Ok(reported) => reported,
        Err(why) => return writeln!(io::stderr(), "native: no real stack: {why}"),
    };
    let entries = unwinders.iter().map(|unwinder| summary(unwinder.name, &reported)).collect::<Vec<_>>();
    let frames = match entries.first().map(|entry| &entry.outcome) {
        Some(Outcome::Measured { frames: Some(frames), .. }) => format!(", {frames} frames"),
        _ => String::new(),
    };
    let stack = reported.first().map(|reported| reported.stack.as_str()).unwrap_or_default();
    done(Case { bench: "native/real-stack", name: format!("{stack}{frames}"), unit: "ns", entries })
}

fn in_python(rounds: usize) -> Result<ReportedFigure, String> {
    let library = own_library::find().ok_or("this program's library is missing")?;
    let mut command = Command::new(torch::python());
    command.args(["-c", SCRIPT]).arg(library).arg(rounds.to_string());
    let output = command.output().map_err(|error| format!("{}: {error}", torch::python()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, stderr.lines().last().unwrap_or_default()));
    }
    parse(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| "Python did not describe its stack".to_owned())
}

fn parse(lines: &str) -> Option<ReportedFigure> {
    let stack = lines.lines().find_map(|line| json::text(line, "stack"))?;
    Some(ReportedFigure { stack, outcomes: lines.lines().filter_map(json::parse_outcome).collect() })
}

/// Returns the median over the processes, or why one of them has no figure.
fn summary(peer: &'static str, reported: &[ReportedFigure]) -> Entry {
    let of_peer = || reported.iter().flat_map(|reported| &reported.outcomes).filter(|(name, _)| name == peer);
    let absent = of_peer().map(|(_, outcome)| outcome).find(|outcome| outcome.cost().is_none());
    let costs = of_peer().filter_map(|(_, outcome)| outcome.cost()).collect::<Vec<_>>();
    let frames = of_peer().find_map(|(_, outcome)| match outcome {
        Outcome::Measured { frames, .. } => *frames,
        Outcome::Absent(_) => None,
    });
    let outcome = match (absent, median(&costs)) {
        (Some(absent), _) => absent.clone(),
        (None, Some(cost)) => Outcome::Measured { cost, frames },
        (None, None) => Outcome::Absent("not sampled".to_owned()),
    };
    Entry { peer, outcome }
}

/// Runs in the Python process: measures on the stack of the caller, and prints the lines that [`parse`] reads.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_measure_here(rounds: usize) {
    let scene = Scene::repeated(Code::WithoutFramePointers, 0, rounds);
    let results = stage::run_here(&scene, &peers::all());
    let mut out = io::stdout().lock();
    for Entry { peer, outcome } in results.entries(median) {
        // A failed write means that the reading process has ended.
        let _ = writeln!(out, "{}", json::outcome_line(peer, &outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_the_median_over_processes() {
        let reported = ["90.5", "70.0", "80.0"].map(|cost| {
            let lines = [
                r#"{"stack": "Python 3"}"#.to_owned(),
                format!(r#"{{"peer": "whole", "cost": {cost}, "frames": 86}}"#),
                r#"{"peer": "half", "absent": "short: 4 of 86 frames"}"#.to_owned(),
            ];
            parse(&lines.join("\n"))
        });
        let reported = reported.into_iter().flatten().collect::<Vec<_>>();
        assert!(reported.len() == 3 && reported.iter().all(|reported| reported.stack == "Python 3"));
        assert_eq!(summary("whole", &reported).outcome, Outcome::Measured { cost: 80.0, frames: Some(86) });
        assert_eq!(summary("half", &reported).outcome, Outcome::Absent("short: 4 of 86 frames".to_owned()));
        assert_eq!(summary("missing", &reported).outcome, Outcome::Absent("not sampled".to_owned()));
        assert!(parse("").is_none());
    }
}
