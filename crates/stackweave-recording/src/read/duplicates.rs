//! Processes that are in a recording twice, as when a merged file lies beside its parts.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::index::Place;
use super::missing::Twice;
use super::process::ProcessRecording;

/// With how many others of the same process a recording is compared.
const MOST_COMPARED: usize = 64;

/// Keeps one of those recordings that hold the same events, or one of which holds all that the other does.
pub(crate) fn leave_out(processes: Vec<ProcessRecording>) -> (Vec<ProcessRecording>, Vec<Twice>) {
    let mut kept: Vec<ProcessRecording> = Vec::with_capacity(processes.len());
    let mut of_process: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut twice = Vec::new();
    for process in processes {
        let same = of_process.entry(identity(&process)).or_default();
        let mut place_of_new = kept.len();
        for &index in same.iter().take(MOST_COMPARED) {
            let other = &kept[index];
            if holds_all(other, &process) {
                twice.push(tell(other, &process, false));
                place_of_new = usize::MAX;
            } else if holds_all(&process, other) {
                twice.push(tell(&process, other, false));
                place_of_new = index;
            } else {
                continue;
            }
            break;
        }
        if place_of_new == kept.len() {
            twice.extend(same.first().map(|other| tell(&kept[*other], &process, true)));
            same.push(place_of_new);
            kept.push(process);
        } else if let Some(place) = kept.get_mut(place_of_new) {
            *place = process;
        }
    }
    (kept, twice)
}

/// The same for all recordings that were begun as one.
fn identity(process: &ProcessRecording) -> u64 {
    let start = process.start();
    let mut hasher = DefaultHasher::new();
    (start.pid, start.started_wall_ns, start.started_monotonic_ns, &start.host, &start.boot_id).hash(&mut hasher);
    hasher.finish()
}

/// Whether every block of events that `part` has is in `all` too, and its end as well.
fn holds_all(all: &ProcessRecording, part: &ProcessRecording) -> bool {
    let mut blocks = all.section().places.iter();
    let has_end = all.end().is_some() || part.end().is_none();
    has_end && part.section().places.iter().all(|wanted| blocks.any(|block| is_same(block, wanted)))
}

fn is_same(a: &Place, b: &Place) -> bool {
    Place { at: 0, ..*a } == Place { at: 0, ..*b }
}

fn tell(kept: &ProcessRecording, other: &ProcessRecording, both_are_read: bool) -> Twice {
    let (kept_path, other_path) = (kept.path().to_owned(), other.path().to_owned());
    Twice { pid: kept.start().pid, kept: kept_path, other: other_path, both_are_read }
}
