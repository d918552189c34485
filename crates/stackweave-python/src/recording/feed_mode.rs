//! The states of a recording.

use crate::errors::Error;

/// The state of a recording, which decides what it does with events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FeedMode {
    /// Has not started.
    New,
    /// Records events.
    Recording,
    /// Records events and was paused before. Open spans are tracked, because some have no begin event.
    Resumed,
    /// Omits events, except the ends of recorded spans.
    Paused,
    /// Was stopped by the program; further events are errors.
    Stopped,
    /// Was stopped at the exit of the program; further events are ignored.
    Over,
    /// Records events beside a trace, which nests spans in calls.
    Traced,
    /// Was not started because another recording is active; events are ignored.
    Skipped,
}

/// The modes by their numbers.
const MODES: [FeedMode; 8] = [
    FeedMode::New,
    FeedMode::Recording,
    FeedMode::Resumed,
    FeedMode::Paused,
    FeedMode::Stopped,
    FeedMode::Over,
    FeedMode::Traced,
    FeedMode::Skipped,
];

impl FeedMode {
    /// Returns the mode with this number.
    #[inline]
    pub(super) fn from_number(number: u8) -> Self {
        MODES[usize::from(number) % MODES.len()]
    }

    /// Returns whether the ends of recorded spans are recorded.
    pub(crate) fn records_ends(self) -> bool {
        matches!(self, Self::Recording | Self::Resumed | Self::Traced | Self::Paused)
    }

    /// Returns why an event is an error; `None` if it is recorded or ignored.
    pub(super) fn state_error(self) -> Option<&'static str> {
        match self {
            Self::New => Some("the recording has not started: call start(), or use it in a with statement"),
            Self::Stopped => Some("the recording was stopped and records no more events"),
            Self::Recording | Self::Resumed | Self::Traced | Self::Paused | Self::Over | Self::Skipped => None,
        }
    }

    /// Returns the same as an error.
    pub(super) fn error(self) -> Error {
        Error::state(self.state_error().unwrap_or("no recorder"))
    }
}
