//! Processes that occur twice, as when a merged file is beside its parts.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::index::EventsBlock;
use super::missing::DuplicateProcess;
use super::process::ProcessRecording;

/// The maximum number of recordings of the same process that a recording is compared with.
const MAX_COMPARED: usize = 64;

/// Keeps one of two recordings if they have the same events, or if one has all events of the other.
pub(crate) fn leave_out(processes: Vec<ProcessRecording>) -> (Vec<ProcessRecording>, Vec<DuplicateProcess>) {
    let mut kept: Vec<ProcessRecording> = Vec::with_capacity(processes.len());
    let mut of_process: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut duplicates = Vec::new();
    for process in processes {
        let same = of_process.entry(identity(&process)).or_default();
        let mut index_of_new = kept.len();
        for &index in same.iter().take(MAX_COMPARED) {
            let other = &kept[index];
            if holds_all(other, &process) {
                duplicates.push(describe(other, &process, false));
                index_of_new = usize::MAX;
            } else if holds_all(&process, other) {
                duplicates.push(describe(&process, other, false));
                index_of_new = index;
            } else {
                continue;
            }
            break;
        }
        if index_of_new == kept.len() {
            duplicates.extend(same.first().map(|other| describe(&kept[*other], &process, true)));
            same.push(index_of_new);
            kept.push(process);
        } else if let Some(replaced) = kept.get_mut(index_of_new) {
            *replaced = process;
        }
    }
    (kept, duplicates)
}

/// Returns a hash that is equal for all recordings that were begun as one.
fn identity(process: &ProcessRecording) -> u64 {
    let start = process.start();
    let mut hasher = DefaultHasher::new();
    (start.pid, start.started_wall_ns, start.started_monotonic_ns, &start.host, &start.boot_id).hash(&mut hasher);
    hasher.finish()
}

/// Returns whether `all` has every block of events of `part`, and its end.
fn holds_all(all: &ProcessRecording, part: &ProcessRecording) -> bool {
    let mut blocks = all.section().event_blocks.iter();
    let has_end = all.end().is_some() || part.end().is_none();
    has_end && part.section().event_blocks.iter().all(|wanted| blocks.any(|block| is_same(block, wanted)))
}

fn is_same(a: &EventsBlock, b: &EventsBlock) -> bool {
    EventsBlock { at: 0, ..*a } == EventsBlock { at: 0, ..*b }
}

fn describe(kept: &ProcessRecording, other: &ProcessRecording, both_are_read: bool) -> DuplicateProcess {
    let (kept_path, other_path) = (kept.path().to_owned(), other.path().to_owned());
    DuplicateProcess { pid: kept.start().pid, kept: kept_path, other: other_path, both_are_read }
}
