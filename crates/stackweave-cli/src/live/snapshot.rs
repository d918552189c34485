//! The state of a recording at one moment, as the screen needs it.

use std::time::Duration;

use stackweave_profile::Measure;
use stackweave_profile::live::TopRow;

/// A recording at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveSnapshot {
    pub(super) state: RecordingState,
    /// The time since the start of the recording; up to its end if it has one.
    pub(super) elapsed: Duration,
    pub(super) file_bytes: u64,
    pub(super) processes: usize,
    pub(super) threads: usize,
    pub(super) events: u64,
    /// Events in the file that were not read yet, because they are written faster than they are read.
    pub(super) behind: u64,
    pub(super) lost: u64,
    pub(super) has_calls: bool,
    pub(super) has_memory: bool,
    pub(super) calls: Calls,
    pub(super) memory: LiveFigures,
    /// Remarks for the user, one sentence each.
    pub(super) remarks: Vec<String>,
}

/// The state of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RecordingState {
    /// There is no file, or it is empty.
    #[default]
    Waiting,
    Recording,
    /// A flight recorder, which keeps the last moments and writes them at its end.
    Ring,
    Ended,
    /// The recording has no end, and its process has ended.
    Killed,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// Not sorted.
    pub(super) rows: Vec<TopRow>,
    /// In nanoseconds.
    pub(super) total: i64,
    pub(super) begun: u64,
    /// One value per second.
    pub(super) rate: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LiveFigures {
    /// Not sorted.
    pub(super) rows: Vec<TopRow>,
    /// The total of the selected measure.
    pub(super) total: i64,
    pub(super) measure: Option<Measure>,
    pub(super) live_bytes: u64,
    pub(super) live_blocks: u64,
    pub(super) peak_bytes: u64,
    pub(super) allocations: u64,
    pub(super) allocated_bytes: u64,
    /// The highest value of each quarter of a second.
    pub(super) curve: Vec<u64>,
    pub(super) is_estimated: bool,
}

/// The options of the view, so that only what is shown is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ViewOptions {
    pub(super) shows_memory: bool,
    pub(super) measure: Measure,
    pub(super) show_all: bool,
    pub(super) is_paused: bool,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self { shows_memory: false, measure: Measure::LiveBytes, show_all: false, is_paused: false }
    }
}
