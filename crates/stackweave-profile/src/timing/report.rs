//! What phases took, by function and by run.

use std::ops::RangeInclusive;

use stackweave_recording::{Missing, ProcessRecording, ReadError};
use stackweave_symbolize::Symbolizer;

use super::phase_facts::PhaseFacts;
use super::problems::Oddities;
use super::runs::{self, RunRow};
use super::walk::{Walked, walk};
use crate::aggregate::{
    AggregateOptions, CallStatistics, Counts, Edge, Function, FunctionId, FunctionTable, Grouping, Measure, Profile,
    RecordedNames, Statistics, View, aggregate, offsets, ranges,
};
use crate::frame::{Frame, FrameKind};

/// What the phases of processes took.
#[derive(Clone, Debug)]
pub struct TimingReport {
    /// The functions that phases are of.
    pub functions: FunctionTable,
    /// A row for each that is seen, in the order of their ids.
    pub rows: Vec<PhaseRow>,
    /// A row for each run, in the order in which they began.
    pub runs: Vec<RunRow>,
    /// What all of it took, all threads together, in nanoseconds.
    pub total_ns: i64,
    /// What was seen while it was read.
    pub counts: Counts,
    /// What did not fit together.
    pub oddities: Oddities,
    /// What could not be read, for each process.
    pub missing: Vec<Missing>,
}

/// What the phases of one function took. Costs are nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseRow {
    /// Whose they are.
    pub function: FunctionId,
    /// What all of them took.
    pub statistics: CallStatistics,
    /// What those took that were in no other phase.
    pub outermost: CallStatistics,
    /// How many failed.
    pub failed: u64,
    /// How many were left open when a phase around them ended.
    pub left_open: u64,
    /// How many have no end in the recording.
    pub unfinished: u64,
    /// How much bytecode the function has; the most, if different numbers were told.
    pub bytecode_count: Option<u64>,
    /// How deep it was inlined, at least and at most.
    pub inline_depth: Option<RangeInclusive<u64>>,
    /// Who called it.
    pub callers: Vec<CallerRow>,
}

/// What phases took that one function has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerRow {
    /// Who has begun them.
    pub caller: FunctionId,
    /// What they took.
    pub statistics: CallStatistics,
}

impl PhaseRow {
    /// How many nanoseconds the function itself took for each bytecode, on average of its calls.
    #[expect(clippy::cast_precision_loss, reason = "an average, for people")]
    pub fn ns_per_bytecode(&self) -> Option<f64> {
        let all = self.bytecode_count?.checked_mul(self.statistics.calls).filter(|all| *all > 0)?;
        Some(self.statistics.own as f64 / all as f64)
    }
}

/// Reads what phases some processes have recorded. Whatever begins and ends is one, in recordings of calls too.
///
/// Of `options` the threads and the range count. `progress` is told how many of all bytes are done, twice over: the events
/// are read once for times, and once for all else.
pub fn read_timing(
    processes: &[ProcessRecording],
    options: &AggregateOptions,
    view: &View,
    symbolizer: Option<&Symbolizer>,
    progress: &mut dyn FnMut(u64),
) -> Result<TimingReport, ReadError> {
    let options = AggregateOptions {
        measure: Some(Measure::WallTime),
        grouping: Grouping::Merged,
        lines: false,
        ..options.clone()
    };
    let mut aggregated = aggregate(processes, &options, symbolizer, &mut *progress)?;
    let missing = core::mem::take(&mut aggregated.missing);
    let profile = aggregated.merged().view(view);
    let mut report = Reading::of(&profile);
    let mut done = processes.iter().map(ProcessRecording::bytes).sum::<u64>();
    let ranges = ranges(processes, options.range.as_ref());
    for ((process, range), later) in processes.iter().zip(ranges).zip(offsets(processes)) {
        let walked = walk(process, &options, range, &mut |bytes| progress(done + bytes))?;
        done += process.bytes();
        report.add(process, &walked, symbolizer, later);
    }
    Ok(report.finish(&profile, missing))
}

/// A report in the making.
struct Reading {
    functions: FunctionTable,
    /// By function.
    facts: Vec<PhaseFacts>,
    runs: Vec<RunRow>,
    parents: Vec<Option<usize>>,
    oddities: Oddities,
}

impl Reading {
    fn of(profile: &Profile) -> Self {
        let functions = profile.functions().clone();
        let facts = vec![PhaseFacts::default(); functions.functions().len()];
        Self { functions, facts, runs: Vec::new(), parents: Vec::new(), oddities: Oddities::default() }
    }

    fn add(&mut self, process: &ProcessRecording, walked: &Walked, symbolizer: Option<&Symbolizer>, later: u64) {
        let of_runs = walked.runs.iter().flat_map(|run| run.sums.phases.keys().chain([&run.frame]));
        let mut frames: Vec<u32> = walked.facts.keys().chain(of_runs).copied().collect();
        frames.extend(Oddities::frames(walked, process));
        let names = RecordedNames::resolve(process, &frames, symbolizer);
        let function = |frame: u32| {
            let unknown = || Function::of_frame(&Frame::named(FrameKind::Label, Frame::UNKNOWN.into()), None);
            names.of(frame).first().map_or_else(unknown, |frame| Function::of_frame(frame, None))
        };
        for (frame, facts) in &walked.facts {
            if let Some(id) = self.functions.find(&function(*frame)).filter(|id| id.index() < self.facts.len()) {
                self.facts[id.index()].add(facts);
            }
        }
        // The places of runs of this process, without those that lie outside of the time asked for.
        let mut places = Vec::with_capacity(walked.runs.len());
        for run in &walked.runs {
            let functions = &mut self.functions;
            let row = runs::row(run, process, later, |frame| functions.intern(function(frame)));
            places.push(row.as_ref().map(|_| self.runs.len()));
            self.parents.extend(row.as_ref().map(|_| run.parent.and_then(|parent| places[parent])));
            self.runs.extend(row);
        }
        self.oddities.add(walked, process, &names, later);
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
        self.oddities.sort();
        TimingReport {
            functions: self.functions,
            rows,
            runs: runs::numbered(self.runs, &self.parents),
            total_ns: profile.total(),
            counts: profile.counts(),
            oddities: self.oddities,
            missing,
        }
    }
}

impl CallerRow {
    fn of(edge: &Edge) -> Self {
        Self { caller: edge.caller, statistics: edge.statistics }
    }
}
