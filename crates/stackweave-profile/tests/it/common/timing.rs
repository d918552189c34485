//! Recordings of phases that are made up.

use stackweave_core::{EventKind, RawFrame};
use stackweave_profile::timing::{PhaseRow, RunRow, TimingReport, read_timing};
use stackweave_profile::{AggregateOptions, View};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events;
use stackweave_store::label;
use stackweave_tapes::{Tape, stack_word, with_bytes};

/// The phases of a process; a tick of its clock is a nanosecond.
pub struct Phases {
    pub tape: Tape,
    pub thread: u32,
}

/// A function with a file.
pub fn code(name: &str) -> RawFrame {
    label(name, "model.py", 10).unwrap()
}

impl Phases {
    pub fn new() -> Self {
        Self::on(Tape::new())
    }

    pub fn on(tape: Tape) -> Self {
        Self { tape, thread: 1 }
    }

    pub fn on_thread(&mut self, thread: u32) -> &mut Self {
        self.thread = thread;
        self
    }

    pub fn push(&mut self, ticks: u64, frame: RawFrame) -> &mut Self {
        self.tape.begin((self.thread, ticks), frame);
        self
    }

    pub fn push_code(&mut self, ticks: u64, frame: RawFrame, bytecode_count: u64, inline_depth: u64) -> &mut Self {
        self.event(ticks, &events::BEGIN_CODE, &[frame.to_bits(), bytecode_count, inline_depth])
    }

    pub fn push_with(&mut self, ticks: u64, frame: RawFrame, json: &str) -> &mut Self {
        self.event(ticks, &events::BEGIN_WITH, &with_bytes(&[frame.to_bits(), 0], json))
    }

    pub fn push_run(&mut self, ticks: u64, frame: RawFrame, json: &str) -> &mut Self {
        self.event(ticks, &events::BEGIN_RUN, &with_bytes(&[frame.to_bits()], json))
    }

    pub fn still_open(&mut self, ticks: u64, frame: RawFrame, depth: u64) -> &mut Self {
        self.event(ticks, &events::STILL_OPEN, &[frame.to_bits(), depth])
    }

    pub fn pop(&mut self, ticks: u64) -> &mut Self {
        self.tape.end((self.thread, ticks));
        self
    }

    pub fn pop_with(&mut self, ticks: u64, json: &str) -> &mut Self {
        self.event(ticks, &events::END_WITH, &with_bytes(&[], json))
    }

    pub fn fail(&mut self, ticks: u64, json: &str) -> &mut Self {
        self.event(ticks, &events::END_FAILED, &with_bytes(&[], json))
    }

    pub fn leave_open(&mut self, ticks: u64) -> &mut Self {
        self.event(ticks, &events::END_LEFT_OPEN, &[])
    }

    pub fn unmatched(&mut self, ticks: u64, frame: RawFrame, stack: &[RawFrame]) -> &mut Self {
        self.event(ticks, &events::UNMATCHED_POP, &[frame.to_bits(), stack_word(stack)])
    }

    fn event(&mut self, ticks: u64, kind: &EventKind, words: &[u64]) -> &mut Self {
        self.tape.event((self.thread, ticks), kind, words);
        self
    }

    pub fn report(self) -> TimingReport {
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

/// Calls, primitive calls, own, total and `total_of_all`.
pub type Costs = (u64, u64, i64, i64, i64);

pub fn costs(statistics: stackweave_profile::CallStatistics) -> Costs {
    let stackweave_profile::CallStatistics { calls, primitive_calls, own, total, total_of_all } = statistics;
    (calls, primitive_calls, own, total, total_of_all)
}

/// Each function's costs, by name.
pub fn functions(report: &TimingReport) -> Vec<(String, Costs)> {
    let mut all: Vec<_> = report.rows.iter().map(|row| (name(report, row.function), costs(row.statistics))).collect();
    all.sort();
    all
}

/// Each pair of caller and callee with the callee's costs, by names.
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

/// Name, calls and time of the phases of a run.
pub fn phases(report: &TimingReport, run: &RunRow) -> Vec<(String, u64, u64)> {
    run.phases.iter().map(|phase| (name(report, phase.function), phase.calls, phase.total_ns)).collect()
}

/// Name and own time of the phases of a run, by name.
pub fn own_times(report: &TimingReport, run: &RunRow) -> Vec<(String, u64)> {
    let mut own: Vec<_> = run.phases.iter().map(|phase| (name(report, phase.function), phase.own_ns)).collect();
    own.sort();
    own
}

/// The equations of the statistics hold for every function.
pub fn check_equations(report: &TimingReport) {
    let outermost: i64 = report.rows.iter().map(|row| row.outermost.total).sum();
    assert_eq!(outermost, report.total_ns);
    for row in &report.rows {
        let into = |field: fn(&stackweave_profile::CallStatistics) -> i64| -> i64 {
            row.callers.iter().map(|caller| field(&caller.statistics)).sum::<i64>() + field(&row.outermost)
        };
        let all = &row.statistics;
        assert_eq!(into(|of| of.own), all.own);
        assert_eq!(into(|of| of.calls.cast_signed()), all.calls.cast_signed());
        assert_eq!(into(|of| of.total_of_all), all.total_of_all);
        let below: i64 = report
            .rows
            .iter()
            .flat_map(|other| &other.callers)
            .filter(|caller| caller.caller == row.function)
            .map(|caller| caller.statistics.total_of_all)
            .sum();
        assert_eq!(all.own + below, all.total_of_all);
        assert!(all.total <= all.total_of_all && all.primitive_calls <= all.calls);
        assert!(row.callers.iter().all(|caller| caller.statistics.total <= caller.statistics.total_of_all));
    }
}
