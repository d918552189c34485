//! One thread as text. No allocation, no lock, async-signal-safe.

use core::ffi::c_int;
use core::fmt;

use stackweave_core::{RawFrame, RawFrameKind};

use crate::capture::stacks;
use crate::platform::mapped_modules::MappedModules;
use crate::platform::tasks::{self, TaskStatus};
use crate::request::Capture;
use crate::sources::write_frame;

/// A thread and its reply.
#[derive(Debug)]
pub(crate) struct DumpedThread {
    pub(crate) task: c_int,
    pub(crate) reply: Option<Capture>,
    /// The status of a thread that has not replied.
    pub(crate) status: Option<TaskStatus>,
    pub(crate) signal: c_int,
    /// Whether this is the thread that dumps.
    pub(crate) is_own: bool,
}

/// Writes a thread with at most `limit` of its frames.
pub(crate) fn write_thread(
    out: &mut dyn fmt::Write,
    thread: &DumpedThread,
    modules: &MappedModules,
    limit: usize,
) -> fmt::Result {
    let mut buffer = [0; 64];
    write!(out, "\nThread {} \"{}\"", thread.task, tasks::name(thread.task, &mut buffer))?;
    match thread.reply {
        Some(capture) => {
            write_heading(out, thread, capture)?;
            write_stack(out, capture, modules, limit)
        }
        None => write_missing_reply(out, thread),
    }
}

fn write_heading(out: &mut dyn fmt::Write, thread: &DumpedThread, capture: Capture) -> fmt::Result {
    let is_python = |frame: RawFrame| matches!(frame.kind(), RawFrameKind::Python { .. });
    if thread.is_own {
        out.write_str(", the calling thread")?;
    }
    if !capture.stack.is_some_and(|stack| stacks().frames(stack).any(is_python)) {
        out.write_str(", no Python frames")?;
    }
    out.write_str(":\n")
}

fn write_stack(out: &mut dyn fmt::Write, capture: Capture, modules: &MappedModules, limit: usize) -> fmt::Result {
    let Some(stack) = capture.stack else { return out.write_str("  (no memory for its stack)\n") };
    for frame in stacks().frames(stack).take(limit) {
        if let RawFrameKind::Native(address) = frame.kind() {
            out.write_str("  | ")?;
            modules.write(address.lookup(), out)?;
        } else {
            out.write_str("  ")?;
            write_frame(frame, out)?;
        }
        out.write_char('\n')?;
    }
    let more = (stacks().len(stack) as usize).saturating_sub(limit);
    if more > 0 {
        return writeln!(out, "  ({more} more frames)");
    }
    match capture.stop() {
        Some(stop) => writeln!(out, "  (cut here: {stop})"),
        None => Ok(()),
    }
}

fn write_missing_reply(out: &mut dyn fmt::Write, thread: &DumpedThread) -> fmt::Result {
    out.write_str(" has not answered: ")?;
    write_missing_reply_reason(out, thread)
}

/// Writes why a thread has not replied, and ends the line.
pub(crate) fn write_missing_reply_reason(out: &mut dyn fmt::Write, thread: &DumpedThread) -> fmt::Result {
    match thread.status {
        Some(TaskStatus { is_blocked: true, .. }) => writeln!(out, "it blocks signal {}", thread.signal),
        Some(TaskStatus { state: b'D', .. }) => out.write_str("it waits in the kernel, where no signal reaches it\n"),
        Some(TaskStatus { state: b'T' | b't', .. }) => out.write_str("it is stopped\n"),
        _ => out.write_str("it did not respond in time\n"),
    }
}
