//! The options and results of a dump of all threads.

use core::fmt;
use core::time::Duration;

use crate::request::CaptureStart;

/// The options of [`dump_all_threads`](crate::dump_all_threads).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// The time to wait for all threads together. Threads that block the signal get a tenth of it.
    pub timeout: Duration,
    /// The maximum number of frames of each thread, innermost first.
    pub frames: usize,
    /// The frame at which the stack of the calling thread begins; `None` omits the thread.
    pub calling_thread: Option<CaptureStart>,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(1), frames: 256, calling_thread: Some(CaptureStart::Caller) }
    }
}

/// The result of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpSummary {
    /// Number of threads.
    pub threads: usize,
    /// Number of threads that have captured their stacks.
    pub answered: usize,
}

/// The reason why there is no dump. A line with the reason is written instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DumpError {
    /// [`prepare_dumps`](crate::prepare_dumps) was not called.
    NotPrepared,
    /// Every real-time signal already has a handler.
    NoSignal,
    /// The handler of the dump was replaced. [`prepare_dumps`](crate::prepare_dumps) chooses another signal.
    SignalReplaced,
    /// Another dump is being written.
    Busy,
    /// The threads could not be listed: the error number of `/proc/self/task`.
    NoThreadList(i32),
    /// The text could not be written: the error number.
    NotWritten(i32),
    /// The thread of the watchdog could not be started.
    NoThread,
    /// The mapping that advertises this process to others could not be created: the error number.
    NotAdvertised(i32),
    /// This platform does not support dumps.
    UnsupportedPlatform,
}

impl DumpError {
    /// Returns a short description of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotPrepared => "dumps were not prepared",
            Self::NoSignal => "every real-time signal is in use",
            Self::SignalReplaced => "the signal for dumps has another handler now",
            Self::Busy => "another dump is being written",
            Self::NoThreadList(_) => "/proc/self/task can't be read",
            Self::NotWritten(_) => "the text can't be written",
            Self::NoThread => "a thread for the watchdog can't be started",
            Self::NotAdvertised(_) => "the page that advertises it can't be mapped",
            Self::UnsupportedPlatform => "this platform has no dumps",
        }
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match self {
            Self::NoThreadList(error) | Self::NotWritten(error) | Self::NotAdvertised(error) => {
                write!(f, " (error {error})")
            }
            _ => Ok(()),
        }
    }
}

impl core::error::Error for DumpError {}
