//! The metadata of the profile and of its threads.

use serde_json::{Value, json};

use crate::activity::NamedProcess;
use crate::formats::firefox::tables::CATEGORIES;
use crate::formats::firefox::track::Weights;
use crate::source::Source;

/// The version of processed profiles, and of the corresponding Gecko profiles.
const PROCESSED_VERSION: u32 = 55;
const GECKO_VERSION: u32 = 24;

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit a double with microseconds")]
pub(super) fn meta(source: &Source<'_>, processes: &[NamedProcess<'_>], last: u64, samples: u64) -> Value {
    let first = processes.iter().min_by_key(|process| process.began);
    let started = first.map_or(0, |first| first.recording.timeline().wall_ns(0));
    let categories =
        CATEGORIES.map(|(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] }));
    // The interval is the duration of the last sample.
    let interval = (last as f64 / 1e6 / samples.max(1) as f64).max(1e-6);
    json!({
        "product": source.title(),
        "startTime": started as f64 / 1e6,
        "interval": interval,
        "processType": 0,
        "stackwalk": 1,
        "debug": false,
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": PROCESSED_VERSION,
        "symbolicated": true,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "doesNotUseFrameImplementation": true,
        "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "\u{b5}s" },
        "pausedRanges": [],
        "categories": categories,
        "markerSchema": marker_schema(),
    })
}

fn marker_schema() -> Value {
    let display = json!(["marker-chart", "marker-table", "timeline-overview"]);
    let details = json!({ "key": "details", "label": "Details", "format": "string", "searchable": true });
    let unfinished = json!({ "key": "unfinished", "label": "Unfinished", "format": "string" });
    let value = json!({ "key": "value", "label": "Value", "format": "decimal" });
    json!([
        { "name": "span", "display": display, "fields": [details, unfinished] },
        { "name": "instant", "display": display, "fields": [details] },
        { "name": "counter", "display": display, "fields": [value], "chartLabel": "{marker.data.value}" },
    ])
}

/// Returns the members of a thread's object that identify it.
#[expect(clippy::cast_precision_loss, reason = "a double holds the nanoseconds of 100 days")]
pub(super) fn thread(process: &NamedProcess<'_>, number: u32, weights: Weights, is_main: bool) -> Value {
    let known = process.thread(number);
    let tid = known.map_or(0, |thread| thread.tid);
    let name = match known.map_or("", |thread| thread.name.as_str()) {
        "" => format!("thread {tid}"),
        name => name.to_owned(),
    };
    let suffix = if weights == Weights::Samples { " (samples)" } else { "" };
    json!({
        "name": format!("{name}{suffix}"),
        "isMainThread": is_main,
        "processType": "default",
        "processName": process.title,
        "processStartupTime": process.began as f64 / 1e6,
        "processShutdownTime": Value::Null,
        "registerTime": process.began as f64 / 1e6,
        "unregisterTime": Value::Null,
        "pausedRanges": [],
        "pid": process.pid.to_string(),
        "tid": format!("{tid}{suffix}"),
        "showMarkersInTimeline": false,
    })
}
