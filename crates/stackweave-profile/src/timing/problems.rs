//! What was odd about pushes and pops, for people.

use stackweave_recording::ProcessRecording;

use super::report::TimingReport;
use super::walk::Walked;
use crate::aggregate::{Function, Origin, RecordedNames};
use crate::frame::Frame;

/// What did not fit together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Ends that came where nothing was open, as the recorder has told.
    pub unmatched_pops: u64,
    /// Where they came from, the first one first.
    pub unmatched: Vec<UnmatchedPlace>,
    /// Phases that were left open when something around them ended.
    pub left_open: u64,
    /// Phases that have no end in the recording.
    pub unfinished: u64,
}

/// Where ends came from that had nothing to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedPlace {
    /// The function, and file and line if they are known; nothing if the place is not.
    pub place: Option<String>,
    /// How often.
    pub times: u64,
    /// When first, in nanoseconds since the first process began to record.
    pub first_ns: u64,
}

/// So many functions are named in a sentence.
const NAMES: usize = 5;

impl Oddities {
    /// The frames whose names [`Oddities::add`] needs.
    pub(super) fn frames(walked: &Walked, process: &ProcessRecording) -> Vec<u32> {
        let of_stack = |(frame, stack): &(u32, u32)| process.dictionary().frames_of(*stack).chain([*frame]).collect();
        walked.unmatched.keys().flat_map(|key| -> Vec<u32> { of_stack(key) }).collect()
    }

    pub(super) fn add(&mut self, walked: &Walked, process: &ProcessRecording, names: &RecordedNames, later: u64) {
        for ((frame, stack), (times, first)) in &walked.unmatched {
            self.unmatched_pops = self.unmatched_pops.saturating_add(*times);
            let frames: Vec<&Frame> =
                process.dictionary().frames_of(*stack).chain([*frame]).flat_map(|frame| names.of(frame)).collect();
            let place = place_of(&frames);
            self.unmatched.push(UnmatchedPlace { place, times: *times, first_ns: first.saturating_add(later) });
        }
        for facts in walked.facts.values() {
            self.left_open = self.left_open.saturating_add(facts.left_open);
            self.unfinished = self.unfinished.saturating_add(facts.unfinished);
        }
    }

    pub(super) fn sort(&mut self) {
        self.unmatched.sort_by(|a, b| (a.first_ns, &a.place).cmp(&(b.first_ns, &b.place)));
    }
}

/// The innermost frame that is the program's own, or else of anybody's that has a file.
fn place_of(frames: &[&Frame]) -> Option<String> {
    let with_file = || frames.iter().filter(|frame| frame.filename.is_some());
    let own = with_file().find(|frame| Function::of_frame(frame, None).origin == Origin::Program);
    let frame = own.or_else(|| with_file().next())?;
    let (name, file) = (frame.qualname.as_ref().unwrap_or(&frame.name), frame.filename.as_deref()?);
    let line = frame.position.line.or(frame.first_line).map(|line| format!(":{line}")).unwrap_or_default();
    Some(format!("{file}{line} in {name}"))
}

impl TimingReport {
    /// What did not fit together, a sentence for each; nothing if all did.
    pub fn problems(&self) -> Vec<String> {
        let odd = &self.oddities;
        let mut sentences = Vec::new();
        if odd.unmatched_pops > 0 {
            let pops = if odd.unmatched_pops == 1 { "pop was" } else { "pops were" };
            let first = odd.unmatched.iter().find_map(|place| place.place.as_deref());
            let first = first.map(|place| format!(", the first at {place}")).unwrap_or_default();
            sentences.push(format!("{} {pops} left out, since nothing was open{first}.", odd.unmatched_pops));
        }
        let mut say = |count: u64, what: &str, of: &dyn Fn(&super::PhaseRow) -> u64| {
            if count > 0 {
                let phases = if count == 1 { "phase" } else { "phases" };
                sentences.push(format!("{count} {phases} {what}{}.", self.named(of)));
            }
        };
        say(odd.left_open, "left open when a phase around ended", &|row| row.left_open);
        say(odd.unfinished, "without an end in the recording", &|row| row.unfinished);
        sentences
    }

    /// `: parse 3 times, lower`, the most frequent first.
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
