//! A thread that dumps all others when nobody has shown a sign of life for too long.

use core::ffi::c_int;
use core::time::Duration;

use crate::dump::CantDump;
use crate::platform::WatchThread;

/// What a [`Watchdog`] waits for, and what it does then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchdogOptions {
    /// How long it waits for [`Watchdog::reset`].
    pub timeout: Duration,
    /// Whether it dumps again after each further `timeout`. Otherwise once, until the next [`Watchdog::reset`].
    pub repeat: bool,
    /// Whether it ends the process after the dump, at once and with status 1.
    pub exit: bool,
}

/// A thread of its own that waits, and then calls [`dump_all_threads`](crate::dump_all_threads). It belongs to no
/// interpreter, blocks every signal but the dump's, and ends when this is dropped.
///
/// A forked child has no such thread: there every method does nothing.
#[derive(Debug)]
pub struct Watchdog(WatchThread);

impl Watchdog {
    /// Begins to wait. The descriptor is duplicated, so the caller may close its own.
    pub fn start(fd: c_int, options: WatchdogOptions) -> Result<Self, CantDump> {
        WatchThread::start(fd, options).map(Self)
    }

    /// A sign of life: the time begins anew.
    pub fn reset(&self) {
        self.0.reset();
    }

    /// Ends the thread. A dump that is being written is waited for.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// How often it has dumped.
    pub fn dumps(&self) -> u64 {
        self.0.dumps()
    }

    /// Whether there is a thread that waits: it was not cancelled, and this is not a forked child.
    pub fn is_running(&self) -> bool {
        self.0.is_running()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.cancel();
    }
}
