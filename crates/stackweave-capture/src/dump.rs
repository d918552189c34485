//! What is asked of a dump of all threads, and what came of it.

use core::fmt;
use core::time::Duration;

use crate::request::Start;

/// What [`dump_all_threads`](crate::dump_all_threads) writes, and how long it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// How long threads have to answer, all together. Those that block the signal get a tenth of it.
    pub timeout: Duration,
    /// How many frames of each thread are written, innermost first.
    pub frames: usize,
    /// Where the stack of the calling thread begins; `None` leaves the thread out.
    pub calling_thread: Option<Start>,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(1), frames: 256, calling_thread: Some(Start::Caller) }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dumped {
    /// How many threads there are.
    pub threads: usize,
    /// How many of them have said where they are.
    pub answered: usize,
}

/// Why there is no dump. A line that says so is written in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CantDump {
    /// [`prepare_dumps`](crate::prepare_dumps) was not called.
    NotPrepared,
    /// Every real-time signal has a handler already.
    NoSignal,
    /// Another handler was put in the place of the dump's. [`prepare_dumps`](crate::prepare_dumps) chooses another signal.
    SignalTaken,
    /// Another dump is being written.
    Busy,
    /// The threads could not be listed: the error number of `/proc/self/task`.
    NoThreadList(i32),
    /// The text could not be written: the error number.
    NotWritten(i32),
    /// The thread that watches could not be started.
    NoThread,
    /// Other processes can't be shown that this one answers: the error number.
    NotShown(i32),
    /// This platform has no dumps.
    UnsupportedPlatform,
}

impl CantDump {
    /// The reason in a few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotPrepared => "dumps were not prepared",
            Self::NoSignal => "every real-time signal is in use",
            Self::SignalTaken => "the signal for dumps has another handler now",
            Self::Busy => "another dump is being written",
            Self::NoThreadList(_) => "/proc/self/task can't be read",
            Self::NotWritten(_) => "the text can't be written",
            Self::NoThread => "a thread for the watchdog can't be started",
            Self::NotShown(_) => "the page that tells others of it can't be mapped",
            Self::UnsupportedPlatform => "this platform has no dumps",
        }
    }
}

impl fmt::Display for CantDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match self {
            Self::NoThreadList(error) | Self::NotWritten(error) | Self::NotShown(error) => {
                write!(f, " (error {error})")
            }
            _ => Ok(()),
        }
    }
}

impl core::error::Error for CantDump {}
