//! The head of the report: processes, threads, times.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use stackweave_profile::memory::{self, ForeignHooks};
use stackweave_profile::{Measure, TraceNotes};
use stackweave_recording::ProcessRecording;

use super::title::short_title;
use super::trees::Trees;
use crate::activity::{NamedProcess, NamedThread};
use crate::source::{Source, main_process};

/// The threads of all processes, by their indexes in the report.
pub(super) struct Threads<'a> {
    pub(super) processes: Vec<NamedProcess<'a>>,
    indexes: HashMap<(usize, u32), usize>,
}

impl<'a> Threads<'a> {
    pub(super) fn of(source: &Source<'a>) -> Self {
        let processes = NamedProcess::all(source);
        let indexes = listed_threads(&processes).map(|(index, thread)| (index, thread.number)).zip(0..).collect();
        Self { processes, indexes }
    }

    /// Returns the number of threads in the report.
    pub(super) fn count(&self) -> usize {
        self.indexes.len()
    }

    /// Returns the index of a thread in the report, by the index of its process and its number there.
    pub(super) fn index(&self, process: usize, number: u32) -> Option<usize> {
        self.indexes.get(&(process, number)).copied()
    }

    /// Returns the same by the system's ids of the process and the thread.
    pub(super) fn index_of_tid(&self, pid: u32, tid: u32) -> Option<usize> {
        let of_process = |(index, process): (usize, &NamedProcess<'_>)| {
            let mut threads = process.recording.dictionary().threads().filter(|thread| thread.tid == tid);
            threads.find_map(|thread| self.index(index, thread.number))
        };
        let mut processes =
            self.processes.iter().enumerate().filter(|(_, process)| process.recording.start().pid == pid);
        processes.find_map(of_process)
    }
}

/// Returns the threads in the report with the indexes of their processes: all but those of recorders.
fn listed_threads<'p>(processes: &'p [NamedProcess<'_>]) -> impl Iterator<Item = (usize, &'p NamedThread)> {
    let all = processes.iter().enumerate();
    let all = all.flat_map(|(index, process)| process.threads.iter().map(move |thread| (index, thread)));
    all.filter(|(_, thread)| !thread.is_recorders)
}

/// Returns remarks for the user after everything was read, one sentence each.
pub(super) fn remarks(
    source: &Source<'_>,
    trees: &Trees,
    notes: &[TraceNotes],
    hooks: &[Option<ForeignHooks>],
) -> Vec<String> {
    let mut remarks = part_of(source);
    remarks.extend(source.report());
    remarks.extend(tracers_notes(source, notes));
    if trees.entries.is_empty() {
        let has_sums = source.processes().iter().any(memory::has_no_history);
        let why =
            if has_sums { "the recording ended before the first figures were written" } else { "nothing was recorded" };
        remarks.push(format!("There is nothing to show: {why}."));
    }
    if trees.has_memory {
        let is_part = source.options().part.range.is_some();
        remarks.extend(memory::remarks((source.processes(), hooks), Measure::PeakBytes, is_part));
    }
    remarks
}

/// Returns the notes of tracers about their own work, such as functions that they stopped recording.
fn tracers_notes(source: &Source<'_>, notes: &[TraceNotes]) -> Vec<String> {
    let (mut sentences, processes) = (Vec::new(), source.processes());
    for (process, notes) in processes.iter().zip(notes) {
        let of = if processes.len() > 1 { format!("Process {}: ", process.start().pid) } else { String::new() };
        sentences.extend(notes.sentences(process).into_iter().map(|note| format!("{of}The tracer noted: {note}.")));
    }
    sentences
}

/// Returns a sentence about the selected part, if the report is not of the whole recording.
#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn part_of(source: &Source<'_>) -> Vec<String> {
    let part = &source.options().part;
    let time = |ns: u64| Measure::WallTime.text(ns as f64);
    let range = part.range.as_ref().map(|range| match range.end {
        u64::MAX => format!("from {} on", time(range.start)),
        end => format!("from {} to {}", time(range.start), time(end)),
    });
    let threads = (!part.threads.is_empty()).then(|| format!("threads {}", part.threads.join(", ")));
    let parts: Vec<String> = range.into_iter().chain(threads).collect();
    if parts.is_empty() { Vec::new() } else { vec![format!("This is a part of the recording: {}.", parts.join(", "))] }
}

/// Returns the requested title; else a short name of the recording.
fn title(source: &Source<'_>) -> String {
    source.options().title.clone().unwrap_or_else(|| title_of(source, main_process(source.processes())))
}

fn title_of(source: &Source<'_>, process: Option<&ProcessRecording>) -> String {
    let Some(process) = process else { return String::new() };
    short_title(&process.start().command_line).unwrap_or_else(|| source.title_of(process))
}

/// Returns the head, without the entries of the other parts.
pub(super) fn head(source: &Source<'_>, threads: &Threads<'_>) -> Map<String, Value> {
    let processes = threads.processes.iter().map(|process| {
        let ended = process.recording.time_range().map_or(0, |range| range.end).saturating_add(process.began);
        json!({
            "pid": process.pid,
            "title": process.title,
            "labels": process.labels,
            "beganNs": process.began,
            "endedNs": ended,
            "events": process.recording.event_count(),
        })
    });
    let thread_rows = listed_threads(&threads.processes)
        .map(|(index, thread)| json!({"process": index, "tid": thread.tid, "name": thread.name}));
    let fields = json!({
        "format": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "title": title(source),
        "wallNs": source.wall_ns(0).to_string(),
        "durationNs": source.time_range().end,
        "events": source.processes().iter().map(ProcessRecording::event_count).sum::<u64>(),
        "processes": processes.collect::<Vec<_>>(),
        "threads": thread_rows.collect::<Vec<_>>(),
        "before": source.before_change().map(|(first, wall_ns, duration_ns)| json!({
            "title": title_of(source, first),
            "wallNs": wall_ns.to_string(),
            "durationNs": duration_ns,
        })),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
