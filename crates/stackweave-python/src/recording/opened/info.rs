//! `info()`: the metadata of a process in a recording.

use std::collections::HashMap;
use std::ops::ControlFlow;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_profile::TraceNotes;
use stackweave_profile::memory::ForeignHooks;
use stackweave_recording::ProcessRecording;
use stackweave_recording::clock::ClockSource;
use stackweave_recording::file::RecordingMode;

use super::seconds;
use crate::errors::Error;

/// The numbers of events by thread and by kind.
#[derive(Default)]
struct EventCounts {
    threads: HashMap<u32, u64>,
    kinds: HashMap<u8, u64>,
}

pub(super) fn of_process<'py>(py: Python<'py>, process: &ProcessRecording) -> PyResult<Bound<'py, PyDict>> {
    let counts = py.detach(|| count(process))?;
    let start = process.start();
    let info = PyDict::new(py);
    info.set_item("pid", start.pid)?;
    info.set_item("parent", start.parent_pid)?;
    info.set_item("forked_from", start.forked_from)?;
    info.set_item("host", &start.host)?;
    info.set_item("command_line", &start.command_line)?;
    info.set_item("executable", &start.executable)?;
    info.set_item("python", &start.python)?;
    info.set_item("stackweave", &start.stackweave_version)?;
    info.set_item("ring", start.mode == RecordingMode::Ring)?;
    info.set_item("path", process.path().as_os_str())?;
    info.set_item("started", moment(py, start.started_wall_ns)?)?;
    info.set_item("duration", seconds(process.time_range().map_or(0, |range| (range.end - 1).cast_signed())))?;
    info.set_item("ended", process.end().map(|end| end.reason.as_str()))?;
    info.set_item("threads", threads(py, process, &counts)?)?;
    info.set_item("kinds", kinds(py, process, &counts)?)?;
    info.set_item("modules", modules(py, process)?)?;
    info.set_item("events", process.event_count())?;
    info.set_item("bytes", process.bytes())?;
    let clock = PyDict::new(py);
    let source = match start.clock {
        ClockSource::Tsc => "tsc",
        ClockSource::Monotonic => "monotonic",
    };
    clock.set_item("source", source)?;
    clock.set_item("residual_ns", process.timeline().residual_ns())?;
    info.set_item("clock", clock)?;
    let notes = py.detach(|| TraceNotes::read(process).map(|notes| notes.sentences(process)));
    info.set_item("trace", notes.map_err(Error::from)?)?;
    let mut missing = process.missing().sentences();
    missing.extend(ForeignHooks::read(process).map(|found| found.sentence()));
    info.set_item("missing", missing)?;
    Ok(info)
}

/// Reads every event once.
fn count(process: &ProcessRecording) -> PyResult<EventCounts> {
    let mut counts = EventCounts::default();
    let visited = process.visit(None, &mut |_| {}, &mut |events| {
        *counts.threads.entry(events.thread()).or_default() += events.len() as u64;
        for event in events {
            *counts.kinds.entry(event.kind).or_default() += 1;
        }
        ControlFlow::Continue(())
    });
    visited.map_err(Error::from)?;
    Ok(counts)
}

fn moment(py: Python<'_>, wall_ns: i64) -> PyResult<Bound<'_, PyAny>> {
    let datetime = py.import("datetime")?;
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    datetime.getattr("datetime")?.call_method1("fromtimestamp", (seconds(wall_ns), utc))
}

fn threads<'py>(py: Python<'py>, process: &ProcessRecording, counts: &EventCounts) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for thread in process.dictionary().threads() {
        let dict = PyDict::new(py);
        dict.set_item("tid", thread.tid)?;
        dict.set_item("name", &thread.name)?;
        dict.set_item("events", counts.threads.get(&thread.number).copied().unwrap_or(0))?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Returns the kinds that have events, with their counts.
fn kinds<'py>(py: Python<'py>, process: &ProcessRecording, counts: &EventCounts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (number, kind) in process.dictionary().kinds() {
        if let Some(count) = counts.kinds.get(&number) {
            dict.set_item(&*kind.name, count)?;
        }
    }
    Ok(dict)
}

fn modules<'py>(py: Python<'py>, process: &ProcessRecording) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (_, module) in process.dictionary().modules() {
        let dict = PyDict::new(py);
        dict.set_item("path", module.path.as_os_str())?;
        dict.set_item("build_id", module.build_id.as_ref().map(ToString::to_string))?;
        list.append(dict)?;
    }
    Ok(list)
}
