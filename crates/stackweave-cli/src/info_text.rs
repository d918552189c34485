//! The description of a recording, as text.

use std::io::{self, Write};

use stackweave_core::printable;
use stackweave_profile::Measure;
use stackweave_profile::memory::ForeignHooks;
use stackweave_recording::{ProcessRecording, Recording};

use crate::calendar::utc;

/// The number of threads that are shown; the others are counted.
const THREADS: usize = 12;

pub(crate) fn write(out: &mut dyn Write, recording: &Recording, notes: &[Vec<String>]) -> io::Result<()> {
    let processes = recording.processes();
    writeln!(
        out,
        "{}, {} in {}",
        counted(processes.len() as u64, "process", "processes"),
        counted(recording.event_count(), "event", "events"),
        bytes(recording.file_bytes()),
    )?;
    for (process, notes) in processes.iter().zip(notes) {
        writeln!(out)?;
        write_process(out, process, notes)?;
    }
    let missing = recording.missing().sentences();
    if !missing.is_empty() {
        writeln!(out)?;
    }
    missing.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))
}

fn write_process(out: &mut dyn Write, process: &ProcessRecording, notes: &[String]) -> io::Result<()> {
    let (start, dictionary) = (process.start(), process.dictionary());
    writeln!(out, "Process {}  {}", start.pid, printable(&command(process)))?;
    row(out, "file", &format!("{}, {}", process.path().display(), bytes(process.bytes())))?;
    let duration = process.time_range().map_or(0, |range| range.end - range.start);
    row(out, "recorded", &format!("{}, for {}", utc(start.started_wall_ns), time(duration)))?;
    if let Some(end) = process.end() {
        row(out, "ended", end.reason.as_str())?;
    }
    let python = start.python.as_ref().map(|version| format!(", Python {version}")).unwrap_or_default();
    row(out, "on", &format!("{}{python}, stackweave {}", start.host, start.stackweave_version))?;
    if let Some(parent) = start.forked_from {
        row(out, "forked from", &format!("process {parent}"))?;
    }
    if !start.options.is_empty() {
        let options: Vec<String> = start.options.iter().map(|(name, value)| format!("{name} {value}")).collect();
        row(out, "options", &options.join(", "))?;
    }
    let residual = time(process.timeline().residual_ns());
    row(out, "clock", &format!("{}, off by at most {residual}", start.clock))?;
    let (stacks, frames) = (dictionary.stacks().count() as u64, dictionary.frames().count() as u64);
    let modules = dictionary.modules().count() as u64;
    row(out, "stacks", &format!("{} of {} frames in {} modules", count(stacks), count(frames), count(modules)))?;
    row(out, "events", &count(process.event_count()))?;
    write_threads(out, process)?;
    notes.iter().try_for_each(|sentence| row(out, "trace", sentence))?;
    let missing = missing(process);
    if missing.is_empty() {
        return row(out, "missing", "nothing");
    }
    missing.iter().try_for_each(|sentence| row(out, "missing", sentence))
}

/// Returns what is missing in a process, one sentence each.
pub(crate) fn missing(process: &ProcessRecording) -> Vec<String> {
    let mut missing = process.missing().sentences();
    missing.extend(ForeignHooks::read(process).map(|hooks| hooks.sentence()));
    missing
}

fn write_threads(out: &mut dyn Write, process: &ProcessRecording) -> io::Result<()> {
    let (own, programs): (Vec<_>, Vec<_>) = process.dictionary().threads().partition(|thread| thread.is_recorders());
    let mut threads: Vec<_> = programs.into_iter().map(|thread| (process.events_of(thread.number), thread)).collect();
    threads.sort_by_key(|(events, thread)| (core::cmp::Reverse(*events), thread.number));
    for (events, thread) in threads.iter().take(THREADS) {
        let name = if thread.name.is_empty() { "unnamed" } else { &thread.name };
        row(out, "thread", &format!("{} {name}, {}", thread.tid, counted(*events, "event", "events")))?;
    }
    if let Some(rest) = threads.len().checked_sub(THREADS).filter(|rest| *rest > 0) {
        row(out, "", &format!("and {} more", counted(rest as u64, "thread", "threads")))?;
    }
    match own.iter().map(|thread| process.events_of(thread.number)).sum() {
        0 => Ok(()),
        events => row(out, "recorder", &format!("{} with its own figures", counted(events, "event", "events"))),
    }
}

fn row(out: &mut dyn Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "  {name:<12}{}", printable(value))
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn bytes(number: u64) -> String {
    Measure::AllocatedBytes.text(number as f64)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn time(ns: u64) -> String {
    Measure::WallTime.text(ns as f64)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn count(number: u64) -> String {
    Measure::Samples.text(number as f64)
}

fn command(process: &ProcessRecording) -> String {
    let start = process.start();
    if start.command_line.is_empty() { start.executable.clone() } else { start.command_line.join(" ") }
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}
