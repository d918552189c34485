//! Anomalies of pushes and pops, as sentences.

use stackweave_recording::ProcessRecording;

use super::read_phases::ProcessPhases;
use super::report::TimingReport;
use crate::aggregate::{CodeOrigin, Function, RecordedNames};
use crate::frame::Frame;

/// Pushes and pops that did not match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseAnomalies {
    /// Pops without an open phase, according to the recorder.
    pub unmatched_pops: u64,
    /// Their locations, the first one first.
    pub unmatched: Vec<UnmatchedPop>,
    /// Phases that were left open when a phase around them ended.
    pub left_open: u64,
    /// Phases without an end in the recording.
    pub unfinished: u64,
}

/// The location of pops without an open phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedPop {
    /// The function, with file and line if they are known; `None` for an unknown location.
    pub location: Option<String>,
    /// The number of pops.
    pub times: u64,
    /// The time of the first one, in nanoseconds since the first process began to record.
    pub first_ns: u64,
}

/// The number of functions that a sentence names.
const NAMES: usize = 5;

impl PhaseAnomalies {
    /// Returns the frames whose names [`PhaseAnomalies::add`] needs.
    pub(super) fn frames(phases: &ProcessPhases, process: &ProcessRecording) -> Vec<u32> {
        let of_stack = |(frame, stack): &(u32, u32)| process.dictionary().frames_of(*stack).chain([*frame]).collect();
        phases.unmatched.keys().flat_map(|key| -> Vec<u32> { of_stack(key) }).collect()
    }

    pub(super) fn add(
        &mut self,
        phases: &ProcessPhases,
        process: &ProcessRecording,
        names: &RecordedNames,
        later: u64,
    ) {
        for ((frame, stack), (times, first)) in &phases.unmatched {
            self.unmatched_pops = self.unmatched_pops.saturating_add(*times);
            let frames: Vec<&Frame> =
                process.dictionary().frames_of(*stack).chain([*frame]).flat_map(|frame| names.of(frame)).collect();
            let location = location_of(&frames);
            self.unmatched.push(UnmatchedPop { location, times: *times, first_ns: first.saturating_add(later) });
        }
        for facts in phases.facts.values() {
            self.left_open = self.left_open.saturating_add(facts.left_open);
            self.unfinished = self.unfinished.saturating_add(facts.unfinished);
        }
    }

    pub(super) fn sort(&mut self) {
        self.unmatched.sort_by(|a, b| (a.first_ns, &a.location).cmp(&(b.first_ns, &b.location)));
    }
}

/// Formats the innermost frame of the program itself, or else the innermost frame with a file.
fn location_of(frames: &[&Frame]) -> Option<String> {
    let with_file = || frames.iter().filter(|frame| frame.filename.is_some());
    let own = with_file().find(|frame| Function::of_frame(frame, None).origin == CodeOrigin::Program);
    let frame = own.or_else(|| with_file().next())?;
    let (name, file) = (frame.qualname.as_ref().unwrap_or(&frame.name), frame.filename.as_deref()?);
    let line = frame.position.line.or(frame.first_line).map(|line| format!(":{line}")).unwrap_or_default();
    Some(format!("{file}{line} in {name}"))
}

impl TimingReport {
    /// Returns the anomalies, one sentence each.
    pub fn problems(&self) -> Vec<String> {
        let anomalies = &self.anomalies;
        let mut sentences = Vec::new();
        if anomalies.unmatched_pops > 0 {
            let pops = if anomalies.unmatched_pops == 1 { "pop was" } else { "pops were" };
            let first = anomalies.unmatched.iter().find_map(|pop| pop.location.as_deref());
            let first = first.map(|location| format!(", the first at {location}")).unwrap_or_default();
            sentences.push(format!("{} {pops} left out, since nothing was open{first}.", anomalies.unmatched_pops));
        }
        let mut report = |count: u64, what: &str, of: &dyn Fn(&super::PhaseRow) -> u64| {
            if count > 0 {
                let phases = if count == 1 { "phase" } else { "phases" };
                sentences.push(format!("{count} {phases} {what}{}.", self.named(of)));
            }
        };
        report(anomalies.left_open, "left open when an outer phase ended", &|row| row.left_open);
        report(anomalies.unfinished, "without an end in the recording", &|row| row.unfinished);
        sentences
    }

    /// Lists functions like `: parse 3 times, lower`, the most frequent first.
    fn named(&self, count: &dyn Fn(&super::PhaseRow) -> u64) -> String {
        let mut rows: Vec<_> = self.rows.iter().filter(|row| count(row) > 0).collect();
        rows.sort_by_key(|row| core::cmp::Reverse(count(row)));
        let name = |row: &&super::PhaseRow| {
            let name = self.functions.function(row.function).full_name();
            match count(row) {
                1 => name.to_string(),
                times => format!("{name} {times} times"),
            }
        };
        let mut names: Vec<String> = rows.iter().take(NAMES).map(name).collect();
        if rows.len() > NAMES {
            names.push(format!("and {} more", rows.len() - NAMES));
        }
        if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
    }
}
