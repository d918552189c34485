//! The figures of each process, and the snapshot of all of them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stackweave_profile::live::{LiveCalls, LiveMemory, MemoryNow, NativeNames, function_rows};
use stackweave_profile::{Measure, Profile, View};
use stackweave_recording::file::RecordingMode;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use super::followed_files::Files;
use super::processes;
use super::snapshot::{LiveSnapshot, RecordingState, ViewOptions};

/// The thread that the events of recorders themselves are assigned to.
const RECORDER_THREAD: &str = "stackweave";

/// The figures of a process.
#[derive(Debug)]
pub(super) struct ProcessCounts {
    calls: LiveCalls,
    memory: LiveMemory,
    pub(super) names: NativeNames,
}

impl ProcessCounts {
    pub(super) fn new(process: &ProcessRecording) -> Self {
        let (calls, memory) = (LiveCalls::new(process), LiveMemory::new(process));
        Self { calls, memory, names: NativeNames::default() }
    }

    /// Adds new events: all of them if the file no longer grows; else without those that may still be reordered.
    pub(super) fn update(
        &mut self,
        process: &ProcessRecording,
        is_still: bool,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ReadError> {
        let is_all = is_still || process.end().is_some();
        let settled = if is_all { u64::MAX } else { process.settled_ticks() };
        let (has_recorder, is_alone) = LiveMemory::is_recorded(process);
        if !is_alone {
            self.calls.update(process, settled, goes_on)?;
        }
        if !has_recorder && !self.calls.has_memory() {
            return Ok(());
        }
        // Each thread is written at least five times per second: what is half a second old is complete.
        let latest = process.latest_ticks().unwrap_or(0);
        let half_a_second = process.start().ticks_per_second / 2;
        let complete = if is_all { u64::MAX } else { settled.min(latest.saturating_sub(half_a_second)) };
        self.memory.update(process, complete, goes_on)
    }

    fn has_memory(&self, process: &ProcessRecording) -> bool {
        LiveMemory::is_recorded(process).0 || self.calls.has_memory()
    }

    fn behind(&self, process: &ProcessRecording) -> u64 {
        let (calls, memory) = (self.calls.events_done(), self.memory.events_done());
        let done = match LiveMemory::is_recorded(process) {
            (_, true) => memory,
            _ if self.has_memory(process) => calls.min(memory),
            _ => calls,
        };
        process.event_count().saturating_sub(done)
    }
}

/// Makes the snapshot of all processes. Also returns the native frames of each that have no names yet.
pub(super) fn snapshot(
    files: &Files,
    options: ViewOptions,
    is_behind: bool,
) -> Result<(LiveSnapshot, Vec<Vec<u32>>), ReadError> {
    let mut snapshot = LiveSnapshot { remarks: files.remark.iter().cloned().collect(), ..LiveSnapshot::default() };
    let (mut calls, mut memory) = (Profile::empty(Measure::WallTime), Profile::empty(options.measure));
    let mut nameless = Vec::new();
    for (process, figures) in files.processes() {
        let mut frames = Vec::new();
        count(&mut snapshot, process, figures);
        if is_behind {
            snapshot.behind += figures.behind(process);
        }
        if figures.has_memory(process) {
            let now = figures.memory.now(process)?;
            add_memory(&mut snapshot, figures, &now);
            if options.shows_memory {
                merge(&mut memory, &now.profile(process, options.measure, &figures.names));
                frames = now.heaviest_frames(process);
            }
        }
        if !options.shows_memory && figures.calls.calls() > 0 {
            merge(&mut calls, &figures.calls.profile(process, &figures.names));
            frames.extend(figures.calls.frames());
        }
        nameless.push(figures.names.missing(process, frames));
    }
    let view = View { show_all: options.show_all, ..View::default() };
    snapshot.calls.total = calls.total();
    snapshot.calls.rows = function_rows(&calls, &view);
    snapshot.memory.total = memory.total();
    snapshot.memory.rows = function_rows(&memory, &view);
    snapshot.memory.measure = options.shows_memory.then_some(options.measure);
    snapshot.file_bytes = files.followed.iter().map(|file| file.bytes).sum();
    snapshot.state = state(files);
    snapshot.elapsed = elapsed(files, snapshot.state);
    snapshot.remarks.dedup();
    Ok((snapshot, nameless))
}

fn count(snapshot: &mut LiveSnapshot, process: &ProcessRecording, figures: &ProcessCounts) {
    snapshot.processes += 1;
    snapshot.threads += process.dictionary().threads().filter(|thread| thread.name != RECORDER_THREAD).count();
    snapshot.events += process.event_count();
    snapshot.lost += process.missing().events_lost();
    snapshot.has_calls |= figures.calls.calls() > 0;
    snapshot.calls.begun += figures.calls.calls();
    add_all(&mut snapshot.calls.rate, figures.calls.per_second());
    let damaged = |missing: &Missing| (!missing.damaged.is_empty()).then(|| missing.sentences());
    snapshot.remarks.extend(damaged(figures.calls.missing()).into_iter().flatten());
}

fn add_memory(snapshot: &mut LiveSnapshot, figures: &ProcessCounts, now: &MemoryNow) {
    let (totals, memory) = (now.totals(), &mut snapshot.memory);
    snapshot.has_memory = true;
    memory.live_bytes += totals.figures.live_bytes;
    memory.live_blocks += totals.figures.live_blocks;
    memory.peak_bytes += totals.figures.peak_bytes;
    memory.allocations += totals.figures.allocations;
    memory.allocated_bytes += totals.figures.bytes;
    memory.is_estimated |= now.sample_every().is_some();
    add_all(&mut memory.curve, figures.memory.curve());
    snapshot.remarks.extend(now.remarks().iter().cloned());
}

fn add_all(sums: &mut Vec<u64>, values: &[u64]) {
    sums.resize(sums.len().max(values.len()), 0);
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

fn merge(all: &mut Profile, added: &Profile) {
    let same = all.merge(added);
    debug_assert_eq!(same, Ok(()));
}

/// Returns the state of the program itself: forked processes begin and end meanwhile.
fn state(files: &Files) -> RecordingState {
    let Some((process, _)) = files.processes().next() else { return RecordingState::Waiting };
    let start = process.start();
    let is_here = start.boot_id == processes::boot_id();
    match (process.end(), start.mode) {
        (Some(_), _) => RecordingState::Ended,
        (None, _) if is_here && !processes::is_running(start.pid) => RecordingState::Killed,
        (None, RecordingMode::Ring) => RecordingState::Ring,
        (None, RecordingMode::Whole) => RecordingState::Recording,
    }
}

fn elapsed(files: &Files, state: RecordingState) -> Duration {
    let Some((process, figures)) = files.processes().next() else { return Duration::ZERO };
    let recorded = process.time_range().map_or(figures.calls.last_ns(), |range| range.end);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = Duration::from_nanos(u64::try_from(process.start().started_wall_ns).unwrap_or(0));
    match state {
        RecordingState::Recording | RecordingState::Ring => now.saturating_sub(since),
        _ => Duration::from_nanos(recorded),
    }
}
