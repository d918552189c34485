//! Phases that are recorded like programs do, and read back.

mod anomalies;
mod forking;
mod model;
mod trees;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackweave_core::{FieldType, NoNames, RawFrame};
use stackweave_profile::{AggregateOptions, CallStatistics, FunctionId, Profile, Statistics, aggregate};
use stackweave_recording::clock::ClockSource;
use stackweave_recording::timing::Timing;
use stackweave_recording::{ProcessRecording, Recorder, RecorderOptions, Recording};
use stackweave_store::{StackTable, label};
use stackweave_testkit::folder::Folder;

static STACKS: StackTable = StackTable::new();

pub fn frame(name: &str) -> RawFrame {
    label(name, "phases.py", 1).unwrap()
}

pub fn options(path: PathBuf) -> RecorderOptions {
    RecorderOptions { clock: Some(ClockSource::Monotonic), ..RecorderOptions::new(path) }
}

pub fn timing_with(options: RecorderOptions) -> Timing {
    Timing::new(Recorder::start(options, &STACKS, Arc::new(NoNames)).unwrap()).unwrap()
}

/// Starts a recording with explicit times.
pub fn timing(folder: &Folder) -> Timing {
    timing_with(options(folder.file("phases.swv")))
}

/// Calls, primitive calls, self and total nanoseconds.
pub type Numbers = [i64; 4];

/// The figures of functions, and of functions by caller.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub functions: BTreeMap<String, Numbers>,
    pub callers: BTreeMap<(String, String), Numbers>,
}

impl Table {
    pub fn new(functions: &[(&str, Numbers)], callers: &[(&str, &str, Numbers)]) -> Self {
        let callers = callers.iter().map(|(caller, callee, cost)| ((caller.to_string(), callee.to_string()), *cost));
        let functions = functions.iter().map(|(name, cost)| (name.to_string(), *cost));
        Self { functions: functions.collect(), callers: callers.collect() }
    }
}

fn numbers(statistics: CallStatistics) -> Numbers {
    let count = |calls: u64| i64::try_from(calls).unwrap();
    [count(statistics.calls), count(statistics.primitive_calls), statistics.self_cost, statistics.total]
}

pub fn profile_of(processes: &[ProcessRecording]) -> Profile {
    aggregate(processes, &AggregateOptions::default(), None, &mut |_| {}).unwrap().merged()
}

pub fn table_of(profile: &Profile) -> Table {
    let statistics = Statistics::of(profile);
    let name = |id: FunctionId| profile.functions().function(id).name.to_string();
    let functions = statistics.functions().map(|(id, cost)| (name(id), numbers(cost))).collect();
    let edges = statistics.edges().iter();
    let callers = edges.map(|edge| ((name(edge.caller), name(edge.callee)), numbers(edge.statistics))).collect();
    Table { functions, callers }
}

pub fn read(path: &Path) -> Recording {
    let recording = Recording::open(path).unwrap();
    assert_eq!(recording.report(), Vec::<String>::new());
    recording
}

/// Ends the recording, and reads it.
pub fn stop_and_read(timing: &Timing) -> Table {
    let summary = timing.recorder().stop();
    assert_eq!((summary.error, summary.lost.len()), (None, 0));
    let profile = profile_of(read(&summary.path).processes());
    let counts = profile.counts();
    assert_eq!((counts.unfinished, counts.unmatched_ends), (0, 0));
    table_of(&profile)
}

/// An event of a recording: its kind, its time in nanoseconds, the name of its frame if it has one, and its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    pub kind: String,
    pub at: i64,
    pub name: String,
    pub details: String,
}

pub fn event(kind: &str, at: i64, name: &str, details: &str) -> RecordedEvent {
    RecordedEvent { kind: kind.to_owned(), at, name: name.to_owned(), details: details.to_owned() }
}

/// Returns the events of one process, in the order of time.
pub fn events(path: &Path) -> Vec<RecordedEvent> {
    let recording = Recording::open(path).unwrap();
    let process = &recording.processes()[0];
    let mut order = process.in_time_order(None, None);
    let mut events = Vec::new();
    while let Some(timed) = order.next_event().unwrap() {
        let dictionary = process.dictionary();
        let kind = dictionary.kind(timed.event.kind).unwrap();
        let frame = kind.position_of(FieldType::Frame).map(|place| u32::try_from(timed.event.words[place]).unwrap());
        let names = frame.map(|frame| dictionary.names(frame)).unwrap_or_default();
        let name = names.first().and_then(|name| dictionary.string(name.name)).unwrap_or_default();
        let details = String::from_utf8(timed.event.bytes.unwrap_or_default().to_vec()).unwrap();
        events.push(event(&kind.name, timed.time_ns, name, &details));
    }
    events
}
