//! Checks that hold for any input, and what they share: recordings that keep to the format, with numbers and texts that
//! no recorder writes. `tests/inputs.rs` gives them the same inputs in every run; `libfuzzer/` looks for others.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a check that fails panics")]

pub mod aggregation;
pub mod export;
pub mod heap;
pub mod recording;
pub mod symbolize_file;
pub mod unwind_step;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackweave_profile::Profile;
use stackweave_recording::Recording;
use stackweave_recording::read::RecordingSource;
use stackweave_testkit::hostile_recording::{HostileOptions, hostile_recording_from};
use stackweave_testkit::random::Random;

/// How many bytes at the beginning of an input choose what is done with the recording that the others make.
const CHOICES: usize = 16;

/// Returns the choices that an input makes, and the recording.
pub(crate) fn choices_and_recording(data: &[u8]) -> (Random, Recording) {
    let (choices, rest) = data.split_at(data.len().min(CHOICES));
    let mut choices = Random::from_bytes(choices);
    let mut options = HostileOptions::hostile(if choices.below(16) == 0 { 400 } else { 0 });
    // Half of them have numbers that can be added up.
    options.numbers = choices.below(2) == 0;
    let bytes = hostile_recording_from(Random::from_bytes(rest), &options);
    (choices, open(&bytes).expect("the generator keeps to the format"))
}

/// Reads bytes as a recording. An error is a sentence.
pub(crate) fn open(bytes: &[u8]) -> Option<Recording> {
    let source: Arc<dyn RecordingSource> = Arc::new(Arc::<[u8]>::from(bytes));
    let opened = Recording::from_source(&source, Path::new("input"));
    opened.map_err(|error| assert!(!error.to_string().is_empty())).ok()
}

/// A part of the time in half of all cases, be it an empty one or one far away.
pub(crate) fn range(choices: &mut Random) -> Option<Range<u64>> {
    let mut time = || match choices.below(3) {
        0 => 0,
        1 => choices.bits() % 2_000_000,
        _ => choices.bits(),
    };
    let (first, second) = (time(), time());
    (choices.below(2) == 0).then(|| first.min(second)..first.max(second))
}

/// A folder in memory where there is such a file system, else in the folder for temporary files.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("stackweave-fuzz-{}-{name}", std::process::id()))
}

/// Callers come before what they call, and a total is what a node and all that it calls cost themselves.
pub(crate) fn check_tree(profile: &Profile) {
    let nodes = profile.tree().nodes();
    let frames = profile.functions().frames().len();
    let mut sums: Vec<i128> = nodes.iter().map(|node| node.cost.self_cost.into()).collect();
    let mut is_saturated: Vec<bool> = nodes.iter().map(|node| is_extreme(node.cost.self_cost)).collect();
    for (id, node) in profile.tree().iter().rev() {
        let (id, parent) = (id.index(), node.parent.index());
        assert!(parent < id, "node {id} comes before its caller {parent}");
        assert!(node.frame.index() < frames, "node {id} has frame {} of {frames}", node.frame.index());
        sums[parent] += sums[id];
        is_saturated[parent] |= is_saturated[id] || is_extreme(node.cost.total);
    }
    for ((node, sum), is_saturated) in nodes.iter().zip(&sums).zip(&is_saturated) {
        let is_sum = i128::from(node.cost.total) == *sum;
        assert!(is_sum || *is_saturated || is_extreme(node.cost.total), "{} != {sum}", node.cost.total);
    }
}

/// Whether a sum may have met the end of its type.
fn is_extreme(value: i64) -> bool {
    value == i64::MAX || value == i64::MIN
}
