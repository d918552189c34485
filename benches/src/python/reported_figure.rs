//! The figures that scripts print, and the cases that they form.

use crate::report::{Case, Entry, Outcome, json};
use crate::statistics::median;

/// All contenders that scripts may name. Ours comes first in every case.
pub(super) const CONTENDERS: [&str; 62] = [
    "ours",
    "ours, id",
    "ours, Python",
    "ours, C calls",
    "ours, demotion",
    "ours, and top",
    "ours, Python stacks",
    "ours, Python allocators",
    "ours, aggregate",
    "ours, sampled",
    "ours, token",
    "ours, drop-in",
    "recorder only",
    "Instant, list",
    "Instant, totals",
    "PyTorch's way",
    "torch",
    "torch fast",
    "torch addr2line",
    "torch dladdr",
    "torch, with stop",
    "torch x 10",
    "sys._getframe",
    "traceback",
    "faulthandler",
    "viztracer",
    "viztracer, raw",
    "viztracer, no C",
    "viztracer x 10",
    "viztracer, no C x 10",
    "yappi",
    "empty hook",
    "hooks only",
    "hooks, words",
    "plain",
    "memray",
    "memray, native",
    "memray, Python allocators",
    "memray, Python allocators, native",
    "memray, aggregate",
    "memray, temporal",
    "tracemalloc 1",
    "tracemalloc 25",
    "filprofiler",
    "scalene",
    "heaptrack",
    "cProfile",
    "contextlib",
    "a call",
    "capture only",
    "lz4 of words",
    "zstd of words",
    "words only",
    "memcpy",
    "rdtsc",
    "clock_gettime",
    "gprof2dot",
    "gprof2dot + dot",
    "dot of ours",
    "inferno",
    "speedscope",
    "target",
];
const UNITS: [&str; 6] = ["ns", "us", "ms", "bytes", "MB", "x"];

/// One line of a script's output.
#[derive(Debug, PartialEq)]
pub(crate) struct ReportedFigure {
    bench: String,
    case: String,
    unit: &'static str,
    peer: &'static str,
    outcome: Outcome,
}

impl ReportedFigure {
    /// Returns a figure of one of the known contenders; `None` if the contender or the unit is unknown.
    pub(crate) fn new(bench: &str, case: &str, unit: &str, peer: &str, cost: f64) -> Option<Self> {
        Some(Self {
            bench: bench.to_owned(),
            case: case.to_owned(),
            unit: UNITS.into_iter().find(|known| *known == unit)?,
            peer: CONTENDERS.into_iter().find(|known| *known == peer)?,
            outcome: Outcome::Measured { cost, frames: None },
        })
    }

    /// Returns the reason why one of the known contenders has no figure.
    pub(crate) fn absent(bench: &str, case: &str, unit: &str, peer: &str, why: String) -> Option<Self> {
        let reported = Self::new(bench, case, unit, peer, 0.0)?;
        Some(Self { outcome: Outcome::Absent(why), ..reported })
    }

    /// Returns the cost of this contender in this case of the bench; `None` if there is no figure.
    pub(crate) fn cost_in(&self, bench: &str, case: &str, peer: &str) -> Option<f64> {
        (self.bench == bench && self.case == case && self.peer == peer).then(|| self.outcome.cost()).flatten()
    }

    /// Formats the figure as a script prints it.
    pub(crate) fn to_line(&self) -> String {
        let outcome = json::outcome_line(self.peer, &self.outcome);
        let (bench, case) = (json::string(&self.bench), json::string(&self.case));
        format!("{{\"bench\": {bench}, \"case\": {case}, \"unit\": \"{}\", {}", self.unit, &outcome[1..])
    }

    /// Parses a line. Returns `None` if it is not a figure, or if its contender is unknown.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (peer, outcome) = json::parse_outcome(line)?;
        let unit = json::text(line, "unit")?;
        Some(Self {
            bench: json::text(line, "bench")?,
            case: json::text(line, "case")?,
            unit: UNITS.into_iter().find(|known| *known == unit)?,
            peer: CONTENDERS.into_iter().find(|known| *known == peer)?,
            outcome,
        })
    }
}

/// Returns the cases of one bench, in the order in which they were first reported. Each cost is the median of its
/// reports.
pub(crate) fn cases(bench: &'static str, reported: &[ReportedFigure]) -> Vec<Case> {
    let reported = reported.iter().filter(|reported| reported.bench == bench).collect::<Vec<_>>();
    let mut names = Vec::<&str>::new();
    for reported in &reported {
        if !names.contains(&reported.case.as_str()) {
            names.push(&reported.case);
        }
    }
    let case = |name: &str| {
        let of_case = reported.iter().copied().filter(|reported| reported.case == name).collect::<Vec<_>>();
        let unit = of_case.first().map_or("ns", |reported| reported.unit);
        Case { bench, name: name.to_owned(), unit, entries: entries(&of_case) }
    };
    names.into_iter().map(case).collect()
}

fn entries(reported: &[&ReportedFigure]) -> Vec<Entry> {
    let of = |peer: &'static str| {
        let outcomes = reported
            .iter()
            .filter(|reported| reported.peer == peer)
            .map(|reported| &reported.outcome)
            .collect::<Vec<_>>();
        let ours = peer == CONTENDERS[0];
        (ours || !outcomes.is_empty()).then(|| Entry { peer, outcome: summary(&outcomes) })
    };
    CONTENDERS.into_iter().filter_map(of).collect()
}

/// Returns the median over the processes, or why one of them has no figure.
fn summary(outcomes: &[&Outcome]) -> Outcome {
    let costs = outcomes.iter().filter_map(|outcome| outcome.cost()).collect::<Vec<_>>();
    let absent = outcomes.iter().copied().find(|outcome| outcome.cost().is_none());
    let frames = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Measured { frames, .. } => *frames,
        Outcome::Absent(_) => None,
    });
    match (absent, median(&costs)) {
        (Some(absent), _) => absent.clone(),
        (None, Some(cost)) => Outcome::Measured { cost, frames },
        (None, None) => Outcome::Absent("not sampled".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(case: &str, peer: &str, rest: &str) -> String {
        format!(r#"{{"bench": "python/x", "case": "{case}", "unit": "ns", "peer": "{peer}", {rest}}}"#)
    }

    #[test]
    fn the_summary_is_the_median_over_processes() {
        let lines = [
            line("b", "torch", r#""cost": 90.0, "frames": 20"#),
            line("a", "torch", r#""cost": 50.0"#),
            line("b", "torch", r#""cost": 70.0, "frames": 20"#),
            line("b", "ours", r#""cost": 10.0"#),
            line("b", "traceback", r#""absent": "Python frames only""#),
        ];
        let reported = lines.iter().filter_map(|line| ReportedFigure::parse(line)).collect::<Vec<_>>();
        let cases = cases("python/x", &reported);
        assert_eq!(cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let peers = cases[0].entries.iter().map(|entry| entry.peer).collect::<Vec<_>>();
        assert_eq!(peers, ["ours", "torch", "traceback"]);
        assert_eq!(cases[0].entries[1].outcome, Outcome::Measured { cost: 80.0, frames: Some(20) });
        assert_eq!(cases[1].entries[0].outcome, Outcome::Absent("not sampled".to_owned()));
        assert!(super::cases("python/y", &reported).is_empty());
    }

    #[test]
    fn a_line_reads_back() {
        let reported = ReportedFigure::new("recording/calls", "1 thread", "MB", "viztracer", 12.5).unwrap();
        assert_eq!(ReportedFigure::parse(&reported.to_line()), Some(reported));
        assert_eq!(ReportedFigure::new("recording/calls", "1 thread", "MB", "unknown", 12.5), None);
    }

    #[test]
    fn a_line_that_is_not_a_result_is_skipped() {
        assert_eq!(ReportedFigure::parse("Traceback (most recent call last):"), None);
        assert_eq!(ReportedFigure::parse(&line("a", "unknown", r#""cost": 1.0"#)), None);
    }
}
