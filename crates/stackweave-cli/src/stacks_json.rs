//! The stacks of a process, as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};
use stackweave_profile::{CodeOrigin, Frame, FrameKind};
use stackweave_remote::{ProcessStacks, ThreadStack};

pub(crate) fn write(out: &mut dyn Write, stacks: &ProcessStacks) -> io::Result<()> {
    let threads = stacks.threads.iter().map(|thread| thread_object(stacks, thread)).collect::<io::Result<Vec<_>>>()?;
    let whole = json!({
        "process": stacks.process,
        "command_line": stacks.command_line,
        "python": stacks.python,
        "stopped_ns": stacks.stopped_for.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        "threads": threads,
        "remarks": stacks.remarks,
    });
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

fn thread_object(stacks: &ProcessStacks, thread: &ThreadStack) -> io::Result<Value> {
    let frames = thread.frames.iter().map(|frame| frame_object(stacks, frame)).collect::<io::Result<Vec<_>>>()?;
    Ok(json!({
        "tid": thread.task,
        "name": thread.name,
        "kernel_name": thread.kernel_name,
        "state": thread.state.to_string(),
        "has_gil": thread.has_gil,
        "problem": thread.problem,
        "frames": frames,
    }))
}

/// Returns a frame as captured frames are written, with its origin and the path of its module.
fn frame_object(stacks: &ProcessStacks, frame: &Frame) -> io::Result<Value> {
    let mut text = Vec::new();
    frame.write_json(&mut text)?;
    let mut object: Value = serde_json::from_slice(&text)?;
    let path = module_path(stacks, frame);
    object["origin"] = CodeOrigin::of(frame, &path).as_str().into();
    if frame.kind == FrameKind::Native && !path.is_empty() {
        object["module_path"] = path.into();
    }
    Ok(object)
}

/// Returns the path of the module of a native frame, as the process sees it.
pub(crate) fn module_path(stacks: &ProcessStacks, frame: &Frame) -> String {
    stacks.module_of(frame).map(|module| module.path.to_string_lossy().into_owned()).unwrap_or_default()
}
