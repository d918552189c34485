//! A thread that dumps all others if it is not reset in time.

use core::ffi::c_int;
use core::time::Duration;

use crate::dump::DumpError;
use crate::platform::WatchThread;

/// The options of a [`Watchdog`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchdogOptions {
    /// The time that it waits for [`Watchdog::reset`].
    pub timeout: Duration,
    /// Whether it dumps again after each further `timeout`. Otherwise it dumps once, until the next
    /// [`Watchdog::reset`].
    pub repeat: bool,
    /// Whether it ends the process after the dump, immediately and with status 1.
    pub exit: bool,
}

/// A thread that waits, and then calls [`dump_all_threads`](crate::dump_all_threads). It belongs to no
/// interpreter, blocks every signal except the one for dumps, and ends when this is dropped.
///
/// The thread does not exist in a forked child: there, no method has an effect.
#[derive(Debug)]
pub struct Watchdog(WatchThread);

impl Watchdog {
    /// Starts waiting. The descriptor is duplicated, so that the caller may close its own.
    pub fn start(fd: c_int, options: WatchdogOptions) -> Result<Self, DumpError> {
        WatchThread::start(fd, options).map(Self)
    }

    /// Restarts the timeout.
    pub fn reset(&self) {
        self.0.reset();
    }

    /// Ends the thread. Waits for a dump that is being written.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns the number of its dumps.
    pub fn dumps(&self) -> u64 {
        self.0.dumps()
    }

    /// Returns whether the thread is waiting: it was not cancelled, and this is not a forked child.
    pub fn is_running(&self) -> bool {
        self.0.is_running()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.cancel();
    }
}
