//! What is asked about memory.

use std::ops::Range;

use stackweave_core::text_matches;
use stackweave_recording::file::RecordedThread;

use crate::aggregate::AggregateOptions;

/// What is asked about the memory of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryQuery {
    /// Only this time, in nanoseconds since the process began to record: the peak inside of it, what is live at its end, and
    /// what was taken meanwhile. The events are replayed for that.
    pub range: Option<Range<u64>>,
    /// Only what these threads have taken, as in [`AggregateOptions::threads`].
    pub threads: Vec<String>,
    /// Only what was taken under these tags: by their whole names, or as globs.
    pub tags: Vec<String>,
    /// Only the memory of these devices; that of all if none is said.
    pub devices: Vec<i64>,
    /// A block is temporary if its thread had taken at most so many others when it was given back; if it is not said, as many
    /// as when it was recorded.
    pub temporary: Option<u32>,
}

impl MemoryQuery {
    /// Whether only some threads or tags are asked for.
    pub fn chooses_rows(&self) -> bool {
        !self.threads.is_empty() || !self.tags.is_empty()
    }

    pub(super) fn takes_device(&self, device: i64) -> bool {
        self.devices.is_empty() || self.devices.contains(&device)
    }

    pub(super) fn takes_thread(&self, thread: Option<&RecordedThread>) -> bool {
        self.threads.is_empty()
            || AggregateOptions { threads: self.threads.clone(), ..AggregateOptions::default() }.takes(thread)
    }

    pub(super) fn takes_tag(&self, tag: &str) -> bool {
        let is_it = |wanted: &String| {
            tag == wanted || (wanted.contains(['*', '?', '[']) && !tag.is_empty() && text_matches(wanted, tag))
        };
        self.tags.is_empty() || self.tags.iter().any(is_it)
    }
}
