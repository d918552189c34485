//! Platforms without dumps: the twin of `linux`, where each call says so.

use core::ffi::{c_int, c_void};

use crate::dump::{CantDump, DumpOptions, Dumped};
use crate::watchdog::WatchdogOptions;

pub(crate) fn prepare_dumps() -> Result<(), CantDump> {
    Err(CantDump::UnsupportedPlatform)
}

pub(crate) fn prepare_answers() -> Result<(), CantDump> {
    Err(CantDump::UnsupportedPlatform)
}

pub(crate) fn signal() -> Result<c_int, CantDump> {
    Err(CantDump::UnsupportedPlatform)
}

pub(crate) fn dump_all_threads(_fd: c_int, _options: &DumpOptions) -> Result<Dumped, CantDump> {
    Err(CantDump::UnsupportedPlatform)
}

/// # Safety
/// None needed here.
pub(crate) unsafe fn dump_all_threads_from_context(
    _fd: c_int,
    _context: *const c_void,
    _options: &DumpOptions,
) -> Result<Dumped, CantDump> {
    Err(CantDump::UnsupportedPlatform)
}

/// A thread that watches. There is none on this platform.
#[derive(Debug)]
pub(crate) struct WatchThread(());

impl WatchThread {
    pub(crate) fn start(_fd: c_int, _options: WatchdogOptions) -> Result<Self, CantDump> {
        Err(CantDump::UnsupportedPlatform)
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
