//! The description of a recording, as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};
use stackweave_recording::{ProcessRecording, Recording};

use crate::info_text;

pub(crate) fn write(out: &mut dyn Write, recording: &Recording, notes: &[Vec<String>]) -> io::Result<()> {
    let processes: Vec<Value> = recording.processes().iter().zip(notes).map(|(of, notes)| process(of, notes)).collect();
    let whole = json!({
        "bytes": recording.file_bytes(),
        "events": recording.event_count(),
        "missing": recording.missing().sentences(),
        "processes": processes,
    });
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

fn process(process: &ProcessRecording, notes: &[String]) -> Value {
    let (start, dictionary) = (process.start(), process.dictionary());
    let threads: Vec<Value> = dictionary
        .threads()
        .map(|thread| json!({"tid": thread.tid, "name": thread.name, "events": process.events_of(thread.number)}))
        .collect();
    let modules: Vec<Value> = dictionary
        .modules()
        .map(|(_, module)| {
            json!({
                "path": module.path.to_string_lossy(),
                "build_id": module.build_id.as_ref().map(ToString::to_string),
                "start": module.start,
                "end": module.end,
                "bias": module.bias,
            })
        })
        .collect();
    let options: serde_json::Map<String, Value> =
        start.options.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "path": process.path().to_string_lossy(),
        "bytes": process.bytes(),
        "pid": start.pid,
        "parent_pid": start.parent_pid,
        "forked_from": start.forked_from,
        "host": start.host,
        "boot_id": start.boot_id,
        "executable": start.executable,
        "command_line": start.command_line,
        "python": start.python,
        "stackweave": start.stackweave_version,
        "started_wall_ns": start.started_wall_ns,
        "duration_ns": process.time_range().map_or(0, |range| range.end - range.start),
        "clock": {"source": start.clock.to_string(), "residual_ns": process.timeline().residual_ns()},
        "options": options,
        "events": process.event_count(),
        "stacks": dictionary.stacks().count(),
        "frames": dictionary.frames().count(),
        "kinds": dictionary.kinds().map(|(_, kind)| kind.name.clone()).collect::<Vec<_>>(),
        "threads": threads,
        "modules": modules,
        "trace": notes,
        "missing": info_text::missing(process),
    })
}
