//! A table for each Python: one row for each program, one column for each tracer.

use crate::python::reported_figure::ReportedFigure;
use crate::report::table::{aligned, figure};
use crate::statistics::{median, spread};

use super::plan::{TOOLS, TORCH};

pub(super) const PROGRAMS: [&str; 9] =
    ["fib", "richards", "deltablue", "builtins", "generators", "exceptions", "asyncio", "imports", "loop"];

/// Formats the slowdown by CPU time of the thread, the width of the middle half of the runs, and the nanoseconds added
/// to an event.
pub(super) fn of_programs(version: &str, reported: &[ReportedFigure]) -> String {
    let tools = TOOLS.into_iter().chain([TORCH]).filter(|tool| {
        PROGRAMS.iter().any(|program| !costs(reported, "trace/cpu", &case(version, program), tool).is_empty())
    });
    let tools = tools.collect::<Vec<_>>();
    let mut lines = vec![vec![format!("Python {version}")]];
    lines[0].extend(tools.iter().map(|&tool| tool.to_owned()));
    for program in PROGRAMS {
        let cell = |tool: &&str| cell(reported, &case(version, program), tool);
        lines.push([program.to_owned()].into_iter().chain(tools.iter().map(cell)).collect());
    }
    format!("Slowdown (spread), and nanoseconds added to an event\n{}\n", aligned(&lines))
}

fn case(version: &str, program: &str) -> String {
    format!("{version}, {program}")
}

fn costs(reported: &[ReportedFigure], bench: &str, case: &str, tool: &str) -> Vec<f64> {
    reported.iter().filter_map(|reported| reported.cost_in(bench, case, tool)).collect()
}

fn cell(reported: &[ReportedFigure], case: &str, tool: &str) -> String {
    let slowdowns = costs(reported, "trace/cpu", case, tool);
    let (Some(slowdown), Some(spread)) = (median(&slowdowns), spread(&slowdowns)) else { return "-".to_owned() };
    // By default our tracer records no native calls: the figure for these is in the column with C calls.
    let is_ours_elsewhere = tool == TOOLS[0] && case.ends_with(", builtins");
    let added = if is_ours_elsewhere { None } else { median(&costs(reported, "trace/event", case, tool)) };
    let added = added.map(|added| format!(" {added:.0} ns"));
    format!("{}x ({spread:.2}){}", figure(slowdown), added.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_slowdown_spread_and_cost() {
        let line = |bench, unit, cost| ReportedFigure::new(bench, "3.12.1, fib", unit, "cProfile", cost).unwrap();
        let reported = [2.0, 4.0, 3.0].map(|cost| line("trace/cpu", "x", cost));
        let reported = reported.into_iter().chain([line("trace/event", "ns", 75.4)]).collect::<Vec<_>>();
        let text = of_programs("3.12.1", &reported);
        let words = |line: usize| text.lines().nth(line).map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(words(1), Some(vec!["Python", "3.12.1", "cProfile"]));
        assert_eq!(words(2), Some(vec!["fib", "3.00x", "(2.00)", "75", "ns"]));
        assert_eq!(words(3), Some(vec!["richards", "-"]));
    }
}
