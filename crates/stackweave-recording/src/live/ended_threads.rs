//! Threads that ended without notice.
//!
//! A thread still frees memory after its destructors have run, and a thread that the C library does not know has none. So no
//! thread ends its lanes itself: the writer does, when the kernel no longer knows the thread.

use std::io;
use std::thread;
use std::time::Duration;

use super::lane::Lane;
use super::lanes;

/// A thread whose destructors have run ends soon. A stop waits for it with this many pauses of this length.
const PATIENCE: u32 = 100;
const MOMENT: Duration = Duration::from_millis(1);

/// Returns whether this thread of a process has ended. A thread without an id has not.
pub(super) fn is_gone(pid: u32, tid: u32) -> bool {
    if tid == 0 {
        return false;
    }
    // SAFETY: signal 0 is not delivered.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    sent != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Ends a lane on behalf of its thread, which has ended.
pub(super) fn end(lane: *mut Lane) {
    lanes::end_once(lane);
}

/// Ends the lanes of a closed session whose threads have ended, or are about to end.
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
