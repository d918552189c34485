//! Platforms without dumps: every function of `linux` fails or does nothing.

use core::ffi::{c_int, c_void};

use crate::dump::{DumpError, DumpOptions, DumpSummary};
use crate::watchdog::WatchdogOptions;

pub(crate) fn prepare_dumps() -> Result<(), DumpError> {
    Err(DumpError::UnsupportedPlatform)
}

pub(crate) fn prepare_answers() -> Result<(), DumpError> {
    Err(DumpError::UnsupportedPlatform)
}

pub(crate) fn signal() -> Result<c_int, DumpError> {
    Err(DumpError::UnsupportedPlatform)
}

pub(crate) fn dump_all_threads(_fd: c_int, _options: &DumpOptions) -> Result<DumpSummary, DumpError> {
    Err(DumpError::UnsupportedPlatform)
}

/// # Safety
/// None needed here.
pub(crate) unsafe fn dump_all_threads_from_context(
    _fd: c_int,
    _context: *const c_void,
    _options: &DumpOptions,
) -> Result<DumpSummary, DumpError> {
    Err(DumpError::UnsupportedPlatform)
}

/// The thread of a watchdog. It does not exist on this platform.
#[derive(Debug)]
pub(crate) struct WatchThread(());

impl WatchThread {
    pub(crate) fn start(_fd: c_int, _options: WatchdogOptions) -> Result<Self, DumpError> {
        Err(DumpError::UnsupportedPlatform)
    }

    pub(crate) fn reset(&self) {}

    pub(crate) fn cancel(&self) {}

    pub(crate) fn dumps(&self) -> u64 {
        0
    }

    pub(crate) fn is_running(&self) -> bool {
        false
    }
}
