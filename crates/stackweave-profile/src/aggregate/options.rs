//! What a profile is made of.

use std::ops::Range;

use stackweave_core::{EventKind, text_matches};
use stackweave_recording::file::RecordedThread;

use crate::aggregate::measure::{Counted, Measure};

/// What of recordings goes into a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AggregateOptions {
    /// What is counted. If it is not said: of a recording of memory the bytes at the peak; else wall time if anything was
    /// begun, else samples if there are any, else the bytes allocated.
    pub measure: Option<Measure>,
    /// Of measures of memory: that of this device; if none is said, the process's own, or that of the first device
    /// where nothing but devices was recorded.
    pub device: Option<i64>,
    /// Only these threads, if any are said: by the system's number, or by name (as a [`Pattern`](crate::Pattern)'s text).
    pub threads: Vec<String>,
    /// Only this time, in nanoseconds since the first of the processes began to record. What began before or ended later
    /// is counted as a call, and for the time that lies inside.
    pub range: Option<Range<u64>>,
    /// Whether lines of a function are told apart.
    pub lines: bool,
    /// How many profiles there are to be.
    pub grouping: Grouping,
}

/// What has a profile of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// Everything together.
    #[default]
    Merged,
    /// Each process.
    Processes,
    /// Each thread of each process.
    Threads,
}

impl AggregateOptions {
    /// This measure, of the device that is asked for.
    pub(crate) fn counted(&self, measure: Measure) -> Counted {
        Counted { measure, device: self.device.unwrap_or(EventKind::OWN_DEVICE) }
    }

    /// Whether a thread is one of those that are asked for.
    pub fn takes(&self, thread: Option<&RecordedThread>) -> bool {
        let is_it = |wanted: &String| {
            thread.is_some_and(|thread| match wanted.parse::<u32>() {
                Ok(tid) => thread.tid == tid || thread.name == *wanted,
                Err(_) => text_matches(wanted, &thread.name),
            })
        };
        self.threads.is_empty() || self.threads.iter().any(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_chosen_by_number_or_name() {
        let thread = RecordedThread { number: 1, tid: 4711, name: "worker-3".to_owned() };
        let takes = |threads: &[&str]| {
            let threads = threads.iter().map(|&text| text.to_owned()).collect();
            AggregateOptions { threads, ..AggregateOptions::default() }.takes(Some(&thread))
        };
        assert!(takes(&[]) && takes(&["4711"]) && takes(&["worker"]) && takes(&["main", "worker-?"]));
        assert!(!takes(&["1"]) && !takes(&["main"]) && !takes(&["worker-??"]));
        assert!(!AggregateOptions { threads: vec!["1".into()], ..AggregateOptions::default() }.takes(None));
    }
}
