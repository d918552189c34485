//! What the report is of: processes, threads, times.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::activity::NamedProcess;
use crate::source::Source;

/// The threads of all processes, by their places in the report.
pub(super) struct Threads<'a> {
    pub(super) processes: Vec<NamedProcess<'a>>,
    places: HashMap<(usize, u32), usize>,
}

impl<'a> Threads<'a> {
    pub(super) fn of(source: &Source<'a>) -> Self {
        let processes = NamedProcess::all(source);
        let all = processes.iter().enumerate();
        let all = all.flat_map(|(place, process)| process.threads.iter().map(move |thread| (place, thread.number)));
        let places = all.zip(0..).collect();
        Self { processes, places }
    }

    /// The place of a thread in the report, by the place of its process and its number there.
    pub(super) fn place(&self, process: usize, number: u32) -> Option<usize> {
        self.places.get(&(process, number)).copied()
    }
}

/// The head, but for what the other parts have to tell.
pub(super) fn head(source: &Source<'_>, threads: &Threads<'_>) -> Map<String, Value> {
    let processes = threads.processes.iter().map(|process| {
        let ended = process.recording.time_range().map_or(0, |range| range.end) + process.began;
        json!({
            "pid": process.pid,
            "title": process.title,
            "labels": process.labels,
            "beganNs": process.began,
            "endedNs": ended,
            "events": process.recording.event_count(),
        })
    });
    let all = threads.processes.iter().enumerate();
    let all = all.flat_map(|(place, process)| process.threads.iter().map(move |thread| (place, thread)));
    let thread_rows = all.map(|(place, thread)| json!({"process": place, "tid": thread.tid, "name": thread.name}));
    let fields = json!({
        "format": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "title": source.title(),
        "wallNs": source.wall_ns(0).to_string(),
        "durationNs": source.time_range().end,
        "events": source.processes().iter().map(stackweave_recording::ProcessRecording::event_count).sum::<u64>(),
        "processes": processes.collect::<Vec<_>>(),
        "threads": thread_rows.collect::<Vec<_>>(),
        "remarks": [],
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
