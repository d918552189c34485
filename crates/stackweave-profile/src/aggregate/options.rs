//! The options of a profile.

use std::ops::Range;

use stackweave_core::text_matches;
use stackweave_recording::file::RecordedThread;

use crate::aggregate::measure::Measure;
use crate::aggregate::view::View;

/// Which part of recordings goes into a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AggregateOptions {
    /// The measure. The default is the peak for a recording of memory; else wall time if there are spans, else samples
    /// if there are any, else the allocated bytes.
    pub measure: Option<Measure>,
    /// The device for measures of memory. The default is the heap, or the first device if only devices were recorded.
    pub device: Option<i64>,
    /// Only these threads, if any: by the system's id, or by name (as the text of a [`Pattern`](crate::Pattern)).
    pub threads: Vec<String>,
    /// Only this time, in nanoseconds since the first process began to record. A span that began before or ended after
    /// it counts as a call, with its time inside the range.
    pub range: Option<Range<u64>>,
    /// Whether lines of a function are separate.
    pub lines: bool,
    /// Whether processes or threads have separate profiles.
    pub grouping: Grouping,
    /// The visible frames; all without a view. A profile is only as large as what is visible.
    pub view: Option<View>,
}

/// The unit that has a separate profile.
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
    /// Returns the view, with all frames by default.
    pub(crate) fn shown(&self) -> &View {
        self.view.as_ref().unwrap_or(View::all())
    }

    /// Returns whether a thread is selected.
    pub fn selects(&self, thread: Option<&RecordedThread>) -> bool {
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
    fn threads_are_selected_by_id_or_name() {
        let thread = RecordedThread { number: 1, tid: 4711, name: "worker-3".to_owned() };
        let takes = |threads: &[&str]| {
            let threads = threads.iter().map(|&text| text.to_owned()).collect();
            AggregateOptions { threads, ..AggregateOptions::default() }.selects(Some(&thread))
        };
        assert!(takes(&[]) && takes(&["4711"]) && takes(&["worker"]) && takes(&["main", "worker-?"]));
        assert!(!takes(&["1"]) && !takes(&["main"]) && !takes(&["worker-??"]));
        assert!(!AggregateOptions { threads: vec!["1".into()], ..AggregateOptions::default() }.selects(None));
    }
}
