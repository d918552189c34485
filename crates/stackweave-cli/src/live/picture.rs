//! What is known of a recording at a moment: all that the screen needs.

use std::time::Duration;

use stackweave_profile::Measure;
use stackweave_profile::live::FunctionRow;

/// A recording at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) state: State,
    /// Since the recording began; up to its end if it has one.
    pub(super) elapsed: Duration,
    pub(super) file_bytes: u64,
    pub(super) processes: usize,
    pub(super) threads: usize,
    pub(super) events: u64,
    /// Events in the file that were not gone through, because they come faster than they can be.
    pub(super) behind: u64,
    pub(super) lost: u64,
    pub(super) has_calls: bool,
    pub(super) has_memory: bool,
    pub(super) calls: Calls,
    pub(super) memory: Memory,
    /// What has to be known, a sentence each.
    pub(super) remarks: Vec<String>,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// There is no file, or nothing in it.
    #[default]
    Waiting,
    Recording,
    /// It keeps the last moments only, and writes them at its end.
    Ring,
    Ended,
    /// It has no end, and its process is gone.
    Killed,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// In no order.
    pub(super) rows: Vec<FunctionRow>,
    /// In nanoseconds.
    pub(super) total: i64,
    pub(super) begun: u64,
    /// For each second.
    pub(super) rate: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// In no order.
    pub(super) rows: Vec<FunctionRow>,
    /// Of the measure that is shown.
    pub(super) total: i64,
    pub(super) measure: Option<Measure>,
    pub(super) live_bytes: u64,
    pub(super) live_blocks: u64,
    pub(super) peak_bytes: u64,
    pub(super) allocations: u64,
    pub(super) allocated_bytes: u64,
    /// The highest of each quarter of a second.
    pub(super) curve: Vec<u64>,
    pub(super) is_estimated: bool,
}

/// What the screen shows now, so that nothing else is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) shows_memory: bool,
    pub(super) measure: Measure,
    pub(super) show_all: bool,
    pub(super) is_paused: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { shows_memory: false, measure: Measure::LiveBytes, show_all: false, is_paused: false }
    }
}
