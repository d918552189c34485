//! The report of phases, by function and by run.

use std::ops::RangeInclusive;

use stackweave_recording::events::Event;
use stackweave_recording::{Missing, ProcessRecording, ReadError, TimedEvent};
use stackweave_symbolize::Symbolizer;

use super::anomalies::PhaseAnomalies;
use super::phase_facts::PhaseFacts;
use super::read_phases::{PhaseReader, ProcessPhases, read_phases};
use super::runs::{self, RunRow};
use crate::aggregate::{
    AggregateOptions, CallStatistics, Edge, EveryMeasure, Function, FunctionId, FunctionTable, Grouping, Hidden,
    Measure, Profile, ProfileCounts, RecordedNames, Statistics, View, aggregate, offsets, ranges,
};
use crate::frame::{Frame, FrameKind};

/// The phases of processes.
#[derive(Clone, Debug)]
pub struct TimingReport {
    /// The functions of the phases.
    pub functions: FunctionTable,
    /// A row for each visible function, in the order of their ids.
    pub rows: Vec<PhaseRow>,
    /// A row for each run, in the order in which they began.
    pub runs: Vec<RunRow>,
    /// The total time of all threads, in nanoseconds.
    pub total_ns: i64,
    /// The cost that the view hides.
    pub hidden: Hidden,
    /// The counts of the events that were read.
    pub counts: ProfileCounts,
    /// Pushes and pops that did not match.
    pub anomalies: PhaseAnomalies,
    /// The data that could not be read, for each process.
    pub missing: Vec<Missing>,
}

/// The phases of one function. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseRow {
    /// The function.
    pub function: FunctionId,
    /// All of its phases.
    pub statistics: CallStatistics,
    /// Its phases outside of all other phases.
    pub outermost: CallStatistics,
    /// The number of phases that failed.
    pub failed: u64,
    /// The number of phases that were left open when a phase around them ended.
    pub left_open: u64,
    /// The number of phases without an end in the recording.
    pub unfinished: u64,
    /// The bytecode count of the function; the highest, if there are several.
    pub bytecode_count: Option<u64>,
    /// The lowest and the highest inline depth.
    pub inline_depth: Option<RangeInclusive<u64>>,
    /// The callers.
    pub callers: Vec<CallerRow>,
}

/// The phases that one function began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerRow {
    /// The caller.
    pub caller: FunctionId,
    /// The phases that it began.
    pub statistics: CallStatistics,
}

impl PhaseRow {
    /// Returns the self time for each bytecode, as an average over calls, in nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "an average for display")]
    pub fn ns_per_bytecode(&self) -> Option<f64> {
        let all = self.bytecode_count?.checked_mul(self.statistics.calls).filter(|all| *all > 0)?;
        Some(self.statistics.self_cost as f64 / all as f64)
    }
}

impl TimingReport {
    /// Returns the sentence about what the view hides, with the option that shows it.
    pub fn hidden_sentence(&self, option: &str) -> Option<String> {
        self.hidden.sentence(self.total_ns, Measure::WallTime, option)
    }
}

/// Reads the phases of processes. All starts and ends count, also in recordings of calls.
///
/// `options` selects threads and range. `progress` is called with the bytes that were read; all bytes are read twice,
/// once for times and once for everything else.
pub fn read_timing(
    processes: &[ProcessRecording],
    options: &AggregateOptions,
    view: &View,
    symbolizer: Option<&Symbolizer>,
    progress: &mut dyn FnMut(u64),
) -> Result<TimingReport, ReadError> {
    let options = AggregateOptions { view: Some(view.clone()), ..time_options(options) };
    let mut aggregated = aggregate(processes, &options, symbolizer, &mut *progress)?;
    let missing = core::mem::take(&mut aggregated.missing);
    let profile = aggregated.merged();
    let mut report = TimingReportBuilder::of(&profile);
    let mut done = processes.iter().map(ProcessRecording::bytes).sum::<u64>();
    let ranges = ranges(processes, options.range.as_ref());
    for ((process, range), later) in processes.iter().zip(ranges).zip(offsets(processes)) {
        let phases = read_phases(process, &options, range, &mut |bytes| progress(done + bytes))?;
        done += process.bytes();
        report.add(process, &phases, symbolizer, later);
    }
    Ok(report.finish(&profile, missing))
}

fn time_options(options: &AggregateOptions) -> AggregateOptions {
    AggregateOptions { measure: Some(Measure::WallTime), grouping: Grouping::Merged, lines: false, ..options.clone() }
}

/// Reads the phases of processes together with their costs, from the same pass over the events.
#[derive(Debug)]
pub struct TimingReader<'a> {
    readers: Vec<(&'a ProcessRecording, PhaseReader<'a>)>,
}

impl<'a> TimingReader<'a> {
    /// Creates a reader. `options` select threads and range, as for the costs.
    pub fn new(processes: &'a [ProcessRecording], options: &'a AggregateOptions) -> Self {
        let ranges = ranges(processes, options.range.as_ref());
        let reader = |(process, range)| (process, PhaseReader::new(process, options, range));
        Self { readers: processes.iter().zip(ranges).map(reader).collect() }
    }

    /// Adds an event of the process with this index.
    #[inline]
    pub fn add(&mut self, process: usize, timed: &TimedEvent<'_>, event: &Event<'_>) {
        let (recording, reader) = &mut self.readers[process];
        let ticks = timed.event.ticks;
        reader.add(timed.thread, (ticks, recording.timeline().nanoseconds(ticks)), event);
    }

    /// Returns the report, with the times of `costs`.
    pub fn finish(self, costs: &EveryMeasure<'_>, view: &View, symbolizer: Option<&Symbolizer>) -> TimingReport {
        let profile = costs.time(view, symbolizer);
        let mut report = TimingReportBuilder::of(&profile);
        let (processes, readers): (Vec<_>, Vec<_>) =
            self.readers.into_iter().map(|(of, reader)| (of.clone(), reader)).unzip();
        for ((process, reader), later) in processes.iter().zip(readers).zip(offsets(&processes)) {
            report.add(process, &reader.finish(), symbolizer, later);
        }
        report.finish(&profile, costs.missing().cloned().collect())
    }
}

/// A report that is being built.
struct TimingReportBuilder {
    functions: FunctionTable,
    /// By function.
    facts: Vec<PhaseFacts>,
    runs: Vec<RunRow>,
    parents: Vec<Option<usize>>,
    anomalies: PhaseAnomalies,
}

impl TimingReportBuilder {
    fn of(profile: &Profile) -> Self {
        let functions = profile.functions().clone();
        let facts = vec![PhaseFacts::default(); functions.functions().len()];
        Self { functions, facts, runs: Vec::new(), parents: Vec::new(), anomalies: PhaseAnomalies::default() }
    }

    fn add(&mut self, process: &ProcessRecording, phases: &ProcessPhases, symbolizer: Option<&Symbolizer>, later: u64) {
        let of_runs = phases.runs.iter().flat_map(|run| run.sums.phases.keys().chain([&run.frame]));
        let mut frames: Vec<u32> = phases.facts.keys().chain(of_runs).copied().collect();
        frames.extend(PhaseAnomalies::frames(phases, process));
        let names = RecordedNames::resolve(process, &frames, symbolizer);
        let function = |frame: u32| {
            let unknown = || Function::of_frame(&Frame::named(FrameKind::Span, Frame::UNKNOWN.into()), None);
            names.of(frame).first().map_or_else(unknown, |frame| Function::of_frame(frame, None))
        };
        for (frame, facts) in &phases.facts {
            if let Some(id) = self.functions.find(&function(*frame)).filter(|id| id.index() < self.facts.len()) {
                self.facts[id.index()].add(facts);
            }
        }
        // The indexes of the runs of this process, without those outside of the selected time.
        let mut indexes = Vec::with_capacity(phases.runs.len());
        for run in &phases.runs {
            let functions = &mut self.functions;
            let row = runs::row(run, process, later, |frame| functions.intern(function(frame)));
            indexes.push(row.as_ref().map(|_| self.runs.len()));
            self.parents.extend(row.as_ref().map(|_| run.parent.and_then(|parent| indexes[parent])));
            self.runs.extend(row);
        }
        self.anomalies.add(phases, process, &names, later);
    }

    fn finish(mut self, profile: &Profile, missing: Vec<Missing>) -> TimingReport {
        let statistics = Statistics::of(profile);
        let row = |(function, facts): (FunctionId, PhaseFacts)| PhaseRow {
            function,
            statistics: statistics.function(function),
            outermost: statistics.outermost(function),
            failed: facts.failed,
            left_open: facts.left_open,
            unfinished: facts.unfinished,
            bytecode_count: facts.bytecode_count,
            inline_depth: facts.inline_depth,
            callers: statistics.callers(function).iter().map(CallerRow::of).collect(),
        };
        let ids = statistics.functions().map(|(id, _)| id);
        let rows = ids.zip(self.facts).map(row).collect();
        self.anomalies.sort();
        TimingReport {
            functions: self.functions,
            rows,
            runs: runs::numbered(self.runs, &self.parents),
            total_ns: profile.total(),
            hidden: profile.hidden(),
            counts: profile.counts(),
            anomalies: self.anomalies,
            missing,
        }
    }
}

impl CallerRow {
    fn of(edge: &Edge) -> Self {
        Self { caller: edge.caller, statistics: edge.statistics }
    }
}
