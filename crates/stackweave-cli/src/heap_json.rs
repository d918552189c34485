//! Memory figures as JSON.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use stackweave_profile::Profile;
use stackweave_profile::memory::{Figures, MemoryReport, NamedFigures, ProcessMemory, StackRow, Totals, top_stacks};

use crate::heap_json_devices;
use crate::json_values::hidden;
use crate::text::{HeapOptions, HeapView};

/// Writes what the view shows; the summary has all views. Times are in seconds since the start of the recording.
pub(crate) fn write(
    out: &mut dyn Write,
    report: &MemoryReport,
    options: &HeapOptions,
    remarks: &[String],
) -> io::Result<()> {
    let mut whole = Map::new();
    let mut put = |name: &str, value: Value| drop(whole.insert(name.to_owned(), value));
    put("device", json!(report.device));
    put("devices", json!(report.devices));
    put("estimated", json!(report.sample_every().is_some()));
    put("sample_every", json!(report.sample_every()));
    put("start", seconds(report.time.start));
    put("end", seconds(report.time.end));
    put("totals", totals(&report.totals));
    put("processes", report.processes.iter().map(process).collect());
    let wants = |view: HeapView| options.view == HeapView::Summary || options.view == view;
    let stacks = |profile: &Profile| stacks(profile, options.limit);
    let mut all_hidden = Map::new();
    for (view, name, profile) in [
        (HeapView::Peak, "peak", &report.peak),
        (HeapView::Leaks, "leaks", &report.live),
        (HeapView::Temporary, "temporary", &report.temporary),
    ] {
        if wants(view) {
            put(name, stacks(profile));
            all_hidden.insert(name.to_owned(), hidden(profile.hidden(), profile.total(), profile.measure()));
        }
    }
    put("hidden", Value::Object(all_hidden));
    for (view, name, groups) in [
        (HeapView::Threads, "threads", &report.threads),
        (HeapView::Tags, "tags", &report.tags),
        (HeapView::Summary, "allocators", &report.allocators),
    ] {
        if wants(view) {
            put(name, groups.iter().map(named).collect());
        }
    }
    if wants(HeapView::Sizes) {
        let size = |(most, of): &(u64, Figures)| with(figures(of), [("most", json!(most))]);
        put("sizes", report.sizes.iter().map(size).collect());
    }
    if wants(HeapView::Time) {
        let points = report.timeline.points.iter();
        let point = |point: &stackweave_profile::memory::TimelinePoint| json!({"time": seconds(point.time_ns), "heap": point.heap, "rss": point.rss});
        put("timeline", points.map(point).collect());
    }
    if wants(HeapView::Devices) {
        put("device_memory", heap_json_devices::devices(report));
    }
    if wants(HeapView::Leaks) {
        put("from_before", json!({"blocks": report.from_before.blocks, "bytes": report.from_before.bytes}));
    }
    put("remarks", json!(remarks));
    serde_json::to_writer_pretty(&mut *out, &Value::Object(whole))?;
    writeln!(out)
}

fn figures(of: &Figures) -> Map<String, Value> {
    let values = [
        ("allocations", of.allocations),
        ("bytes", of.bytes),
        ("live_blocks", of.live_blocks),
        ("live_bytes", of.live_bytes),
        ("peak_blocks", of.peak_blocks),
        ("peak_bytes", of.peak_bytes),
        ("temporary", of.temporary),
        ("temporary_bytes", of.temporary_bytes),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

fn with<const N: usize>(mut to: Map<String, Value>, more: [(&str, Value); N]) -> Value {
    to.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Value::Object(to)
}

fn totals(of: &Totals) -> Value {
    let more =
        [("frees", json!(of.frees)), ("unknown_frees", json!(of.unknown_frees)), ("replaced", json!(of.replaced))];
    with(figures(&of.figures), more)
}

fn process(of: &ProcessMemory) -> Value {
    json!({
        "pid": of.pid,
        "source": of.source.as_str(),
        "mode": of.header.map(|header| header.mode.as_str()),
        "peak_time": of.peak_ns.map(seconds),
        "totals": totals(&of.totals),
    })
}

fn named(of: &NamedFigures) -> Value {
    with(figures(&of.figures), [("name", json!(&*of.name)), ("number", json!(of.number))])
}

fn stacks(profile: &Profile, limit: usize) -> Value {
    let stack =
        |stack: &StackRow| json!({"bytes": stack.self_cost, "blocks": stack.blocks, "stack": frames(profile, stack)});
    top_stacks(profile).iter().take(limit).map(stack).collect()
}

/// Returns the frames of a stack, innermost first.
pub(crate) fn frames(profile: &Profile, stack: &StackRow) -> Value {
    let frame = |frame: &stackweave_profile::FrameIndex| {
        let (frame, functions) = (profile.functions().frame(*frame), profile.functions());
        let function = functions.function(frame.function);
        json!({
            "name": &**function.full_name(),
            "filename": function.filename.as_deref(),
            "module": function.module_name().map(|name| &**name),
            "lineno": frame.line.or(function.first_line),
            "kind": function.kind.as_str(),
        })
    };
    stack.frames.iter().map(frame).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a double holds some weeks to the nanosecond")]
pub(crate) fn seconds(ns: u64) -> Value {
    json!(ns as f64 / 1e9)
}
