//! Reports of phases.

use stackweave_profile::timing::{PhaseRow, RunRow, TimingReport, read_timing};
use stackweave_profile::{AggregateOptions, View};
use stackweave_recording::ProcessRecording;
use stackweave_tapes::phases::PhaseTape;

/// Additional methods of phases.
pub trait PhasesExt {
    fn report(self) -> TimingReport;
}

impl PhasesExt for PhaseTape {
    fn report(self) -> TimingReport {
        report(&[self.tape.process()], &AggregateOptions::default())
    }
}

pub fn report(processes: &[ProcessRecording], options: &AggregateOptions) -> TimingReport {
    read_timing(processes, options, &View::default(), None, &mut |_| {}).unwrap()
}

pub fn name(report: &TimingReport, of: stackweave_profile::FunctionId) -> String {
    report.functions.function(of).full_name().to_string()
}

pub fn row<'a>(report: &'a TimingReport, of: &str) -> &'a PhaseRow {
    report.rows.iter().find(|row| name(report, row.function) == of).unwrap_or_else(|| panic!("no {of}"))
}

/// Calls, primitive calls, self, total and `total_of_all`.
pub type Costs = (u64, u64, i64, i64, i64);

pub fn costs(statistics: stackweave_profile::CallStatistics) -> Costs {
    let stackweave_profile::CallStatistics { calls, primitive_calls, self_cost, total, total_of_all } = statistics;
    (calls, primitive_calls, self_cost, total, total_of_all)
}

/// Returns the costs of each function, by name.
pub fn functions(report: &TimingReport) -> Vec<(String, Costs)> {
    let mut all: Vec<_> = report.rows.iter().map(|row| (name(report, row.function), costs(row.statistics))).collect();
    all.sort();
    all
}

/// Returns each pair of caller and callee with the callee's costs, by names.
pub fn edges(report: &TimingReport) -> Vec<(String, String, Costs)> {
    let of_row = |row: &PhaseRow| {
        let edge = |edge: &stackweave_profile::timing::CallerRow| {
            (name(report, edge.caller), name(report, row.function), costs(edge.statistics))
        };
        row.callers.iter().map(edge).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = report.rows.iter().flat_map(of_row).collect();
    all.sort();
    all
}

/// Returns name, calls and time of the phases of a run.
pub fn phases(report: &TimingReport, run: &RunRow) -> Vec<(String, u64, u64)> {
    run.phases.iter().map(|phase| (name(report, phase.function), phase.calls, phase.total_ns)).collect()
}

/// Returns name and self time of the phases of a run, by name.
pub fn self_times(report: &TimingReport, run: &RunRow) -> Vec<(String, u64)> {
    let mut times: Vec<_> = run.phases.iter().map(|phase| (name(report, phase.function), phase.self_ns)).collect();
    times.sort();
    times
}

/// Asserts the equations of the statistics for every function.
pub fn check_equations(report: &TimingReport) {
    let outermost: i64 = report.rows.iter().map(|row| row.outermost.total).sum();
    assert_eq!(outermost, report.total_ns);
    for row in &report.rows {
        let into = |field: fn(&stackweave_profile::CallStatistics) -> i64| -> i64 {
            row.callers.iter().map(|caller| field(&caller.statistics)).sum::<i64>() + field(&row.outermost)
        };
        let all = &row.statistics;
        assert_eq!(into(|of| of.self_cost), all.self_cost);
        assert_eq!(into(|of| of.calls.cast_signed()), all.calls.cast_signed());
        assert_eq!(into(|of| of.total_of_all), all.total_of_all);
        let below: i64 = report
            .rows
            .iter()
            .flat_map(|other| &other.callers)
            .filter(|caller| caller.caller == row.function)
            .map(|caller| caller.statistics.total_of_all)
            .sum();
        assert_eq!(all.self_cost + below, all.total_of_all);
        assert!(all.total <= all.total_of_all && all.primitive_calls <= all.calls);
        assert!(row.callers.iter().all(|caller| caller.statistics.total <= caller.statistics.total_of_all));
    }
}
