//! The tables of the area `memory`: one row for each recorder, one column for each program.

use std::fmt::Write as _;

use crate::python::reported_figure::ReportedFigure;
use crate::report::table::{aligned, figure};
use crate::statistics::median;

use super::plan::{PROGRAMS, TOOLS};

/// The tables: title, bench and unit of each.
const TABLES: [(&str, &str, &str); 6] = [
    ("Slowdown, CPU time of the thread", "memory/cpu", "x"),
    ("Slowdown, wall clock", "memory/wall", "x"),
    ("CPU time of the whole process", "memory/total", "x"),
    ("Peak resident size", "memory/rss", "x"),
    ("File, MB", "memory/file", ""),
    ("Report, ms", "memory/report", ""),
];

pub(super) fn of_programs(version: &str, reported: &[ReportedFigure]) -> String {
    let mut text = String::new();
    for (title, bench, unit) in TABLES {
        let cost = |program: &str, tool: &str| {
            let case = format!("{version}, {program}");
            median(&reported.iter().filter_map(|reported| reported.cost_in(bench, &case, tool)).collect::<Vec<_>>())
        };
        let programs: Vec<&str> =
            PROGRAMS.into_iter().filter(|program| TOOLS.iter().any(|tool| cost(program, tool).is_some())).collect();
        if programs.is_empty() {
            continue;
        }
        let mut lines = vec![vec![format!("Python {version}")]];
        lines[0].extend(programs.iter().map(|&program| program.to_owned()));
        for tool in TOOLS {
            let cell = |program: &&str| cost(program, tool).map_or("-".to_owned(), |cost| figure(cost) + unit);
            lines.push([tool.to_owned()].into_iter().chain(programs.iter().map(cell)).collect());
        }
        let _ = writeln!(text, "{title}\n{}", aligned(&lines));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_the_median() {
        let line = |cost| ReportedFigure::new("memory/cpu", "3.12.1, calls", "x", "memray", cost).unwrap();
        let text = of_programs("3.12.1", &[2.0, 4.0, 3.0].map(line));
        let words = |line: usize| text.lines().nth(line).map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(words(1), Some(vec!["Python", "3.12.1", "calls"]));
        let of_memray = text.lines().find(|line| line.trim_start().starts_with("memray "));
        assert_eq!(of_memray.map(|line| line.split_whitespace().collect::<Vec<_>>()), Some(vec!["memray", "3.00x"]));
        assert!(!text.contains("Report"));
    }
}
