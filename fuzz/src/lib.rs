//! Checks that hold for any input, and the code that they share: recordings that follow the format, with numbers and
//! texts that no recorder writes. `tests/inputs.rs` runs them on the same inputs every time; `libfuzzer/` searches for
//! others.
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

/// The number of bytes at the start of an input that choose what is done with the recording; the others generate it.
const CHOICES: usize = 16;

/// Returns the choices that an input makes, and the recording.
pub(crate) fn choices_and_recording(data: &[u8]) -> (Random, Recording) {
    let (choices, rest) = data.split_at(data.len().min(CHOICES));
    let mut choices = Random::from_bytes(choices);
    let mut options = HostileOptions::hostile(if choices.below(16) == 0 { 400 } else { 0 });
    // Half of the recordings have numbers that can be added up.
    options.numbers = choices.below(2) == 0;
    let bytes = hostile_recording_from(Random::from_bytes(rest), &options);
    (choices, open(&bytes).expect("the generator follows the format"))
}

/// Reads bytes as a recording. Returns `None` on an error, which must have a message.
pub(crate) fn open(bytes: &[u8]) -> Option<Recording> {
    let source: Arc<dyn RecordingSource> = Arc::new(Arc::<[u8]>::from(bytes));
    let opened = Recording::from_source(&source, Path::new("input"));
    opened.map_err(|error| assert!(!error.to_string().is_empty())).ok()
}

/// Returns a part of the time in half of all cases. It may be empty, or far from all events.
pub(crate) fn range(choices: &mut Random) -> Option<Range<u64>> {
    let mut time = || match choices.below(3) {
        0 => 0,
        1 => choices.bits() % 2_000_000,
        _ => choices.bits(),
    };
    let (first, second) = (time(), time());
    (choices.below(2) == 0).then(|| first.min(second)..first.max(second))
}

/// Returns a folder in memory if there is such a file system, else in the folder for temporary files.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("stackweave-fuzz-{}-{name}", std::process::id()))
}

/// Checks that callers come before their callees, and that the total of a node is the self cost of the node and all its
/// callees.
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

/// Returns whether a sum may have reached the limit of its type.
fn is_extreme(value: i64) -> bool {
    value == i64::MAX || value == i64::MIN
}
