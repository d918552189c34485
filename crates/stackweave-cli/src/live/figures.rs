//! What is known of one process, and the picture of all.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stackweave_profile::live::{LiveCalls, LiveMemory, MemoryNow, NativeNames, function_rows};
use stackweave_profile::{Measure, Profile, View};
use stackweave_recording::file::Mode;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use super::follow::Files;
use super::picture::{Picture, State, Wanted};
use super::processes;

/// What the thread is called that a recorder's own events are of.
const OWN_THREAD: &str = "stackweave";

/// The figures of a process.
#[derive(Debug)]
pub(super) struct Figures {
    calls: LiveCalls,
    memory: LiveMemory,
    pub(super) names: NativeNames,
}

impl Figures {
    pub(super) fn new(process: &ProcessRecording) -> Self {
        let (calls, memory) = (LiveCalls::new(process), LiveMemory::new(process));
        Self { calls, memory, names: NativeNames::default() }
    }

    /// Takes in what is new. Where nothing is added any more, all of it; else without what may still move.
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
        // Threads are written one after the other, at least five times in a second: half a second ago all is there.
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

/// Makes the picture of all processes. Gives also the native frames of each that are to be named, as far as nobody has.
pub(super) fn picture(files: &Files, wanted: Wanted, is_behind: bool) -> Result<(Picture, Vec<Vec<u32>>), ReadError> {
    let mut picture = Picture { remarks: files.remark.iter().cloned().collect(), ..Picture::default() };
    let (mut calls, mut memory) = (Profile::empty(Measure::WallTime), Profile::empty(wanted.measure));
    let mut nameless = Vec::new();
    for (process, figures) in files.processes() {
        let mut frames = Vec::new();
        count(&mut picture, process, figures);
        if is_behind {
            picture.behind += figures.behind(process);
        }
        if figures.has_memory(process) {
            let now = figures.memory.now(process)?;
            add_memory(&mut picture, figures, &now);
            if wanted.shows_memory {
                merge(&mut memory, &now.profile(process, wanted.measure, &figures.names));
                frames = now.heaviest_frames(process);
            }
        }
        if !wanted.shows_memory && figures.calls.calls() > 0 {
            merge(&mut calls, &figures.calls.profile(process, &figures.names));
            frames.extend(figures.calls.frames());
        }
        nameless.push(figures.names.missing(process, frames));
    }
    let view = View { show_all: wanted.show_all, ..View::default() };
    picture.calls.total = calls.total();
    picture.calls.rows = function_rows(&calls, &view);
    picture.memory.total = memory.total();
    picture.memory.rows = function_rows(&memory, &view);
    picture.memory.measure = wanted.shows_memory.then_some(wanted.measure);
    picture.file_bytes = files.followed.iter().map(|file| file.bytes).sum();
    picture.state = state(files);
    picture.elapsed = elapsed(files, picture.state);
    picture.remarks.dedup();
    Ok((picture, nameless))
}

fn count(picture: &mut Picture, process: &ProcessRecording, figures: &Figures) {
    picture.processes += 1;
    picture.threads += process.dictionary().threads().filter(|thread| thread.name != OWN_THREAD).count();
    picture.events += process.event_count();
    picture.lost += process.missing().events_lost();
    picture.has_calls |= figures.calls.calls() > 0;
    picture.calls.begun += figures.calls.calls();
    add_all(&mut picture.calls.rate, figures.calls.per_second());
    let damaged = |missing: &Missing| (!missing.damaged.is_empty()).then(|| missing.sentences());
    picture.remarks.extend(damaged(figures.calls.missing()).into_iter().flatten());
}

fn add_memory(picture: &mut Picture, figures: &Figures, now: &MemoryNow) {
    let (totals, memory) = (now.totals(), &mut picture.memory);
    picture.has_memory = true;
    memory.live_bytes += totals.figures.live_bytes;
    memory.live_blocks += totals.figures.live_blocks;
    memory.peak_bytes += totals.figures.peak_bytes;
    memory.allocations += totals.figures.allocations;
    memory.allocated_bytes += totals.figures.bytes;
    memory.is_estimated |= now.sample_every().is_some();
    add_all(&mut memory.curve, figures.memory.curve());
    picture.remarks.extend(now.remarks().iter().cloned());
}

fn add_all(sums: &mut Vec<u64>, values: &[u64]) {
    sums.resize(sums.len().max(values.len()), 0);
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

fn merge(all: &mut Profile, of: &Profile) {
    let same = all.merge(of);
    debug_assert_eq!(same, Ok(()));
}

/// That of the program: the processes that it forks come and go.
fn state(files: &Files) -> State {
    let Some((process, _)) = files.processes().next() else { return State::Waiting };
    let start = process.start();
    let is_here = start.boot_id == processes::boot_id();
    match (process.end(), start.mode) {
        (Some(_), _) => State::Ended,
        (None, _) if is_here && !processes::is_running(start.pid) => State::Killed,
        (None, Mode::Ring) => State::Ring,
        (None, Mode::Whole) => State::Recording,
    }
}

fn elapsed(files: &Files, state: State) -> Duration {
    let Some((process, figures)) = files.processes().next() else { return Duration::ZERO };
    let recorded = process.time_range().map_or(figures.calls.last_ns(), |range| range.end);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = Duration::from_nanos(u64::try_from(process.start().started_wall_ns).unwrap_or(0));
    match state {
        State::Recording | State::Ring => now.saturating_sub(since),
        _ => Duration::from_nanos(recorded),
    }
}
