//! Queries of memory.

use std::ops::Range;

use stackweave_core::text_matches;
use stackweave_recording::file::RecordedThread;

use crate::aggregate::{AggregateOptions, View};

/// A query of the memory of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryQuery {
    /// Only this time, in nanoseconds since the process began to record: the peak in it, what is live at its end, and
    /// what was allocated in it. The events are replayed for it.
    pub range: Option<Range<u64>>,
    /// Only allocations of these threads, as in [`AggregateOptions::threads`].
    pub threads: Vec<String>,
    /// Only allocations under these tags: by whole names, or as globs.
    pub tags: Vec<String>,
    /// Only the memory of these devices; of all if empty.
    pub devices: Vec<i64>,
    /// A block is temporary if its thread had allocated at most this many others when it was freed; by default the
    /// number of the recording.
    pub temporary: Option<u32>,
    /// The visible frames of a report's profiles, as in [`AggregateOptions::view`].
    pub view: Option<View>,
}

impl MemoryQuery {
    /// Returns whether only some threads or tags are selected.
    pub fn filters_rows(&self) -> bool {
        !self.threads.is_empty() || !self.tags.is_empty()
    }

    pub(super) fn shown(&self) -> &View {
        self.view.as_ref().unwrap_or(View::all())
    }

    pub(super) fn takes_device(&self, device: i64) -> bool {
        self.devices.is_empty() || self.devices.contains(&device)
    }

    pub(super) fn takes_thread(&self, thread: Option<&RecordedThread>) -> bool {
        self.threads.is_empty()
            || AggregateOptions { threads: self.threads.clone(), ..AggregateOptions::default() }.selects(thread)
    }

    pub(super) fn takes_tag(&self, tag: &str) -> bool {
        let is_it = |wanted: &String| {
            tag == wanted || (wanted.contains(['*', '?', '[']) && !tag.is_empty() && text_matches(wanted, tag))
        };
        self.tags.is_empty() || self.tags.iter().any(is_it)
    }
}
