//! Threads that have ended without a last word.
//!
//! A thread still frees memory when its destructors have run, and a thread that the C library does not know has none. So no
//! thread ends its lanes itself: the writer does, when the kernel no longer knows the thread.

use std::io;
use std::thread;
use std::time::Duration;

use super::lane::Lane;
use super::lanes;

/// A thread whose destructors have run is gone in a moment; a stop waits so often for it, each time so long.
const PATIENCE: u32 = 100;
const MOMENT: Duration = Duration::from_millis(1);

/// Whether this thread of a process, by the numbers that the kernel has for them, is gone; one without a number is not.
pub(super) fn is_gone(pid: u32, tid: u32) -> bool {
    if tid == 0 {
        return false;
    }
    // SAFETY: signal 0 is sent to nobody.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    sent != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Ends a lane in the place of its thread, which is gone.
pub(super) fn end(lane: *mut Lane) {
    lanes::end_once(lane);
}

/// The session of these lanes is closed: those are ended whose thread is gone, or will not come back to do so.
pub(super) fn end_all(pid: u32, lanes: impl Iterator<Item = *mut Lane>) {
    let mut patience = PATIENCE;
    for lane in lanes {
        // SAFETY: the writer has a reference to it.
        let shared = unsafe { &(*lane).shared };
        while shared.is_left() && !is_gone(pid, shared.tid) && patience > 0 {
            patience -= 1;
            thread::sleep(MOMENT);
        }
        if is_gone(pid, shared.tid) {
            end(lane);
        }
    }
}
