//! A line on the terminal that says where a recording is whose program a signal has ended.

use std::mem;

use crate::file::EndReason;

const STANDARD_ERROR: libc::c_int = 2;

/// What to write when a signal ends the program, and where to.
#[derive(Debug)]
pub(super) struct Announcement {
    /// What the recording is called.
    name: String,
    /// The file that standard error was: the program may have put another in its place.
    file: (libc::dev_t, libc::ino_t),
}

impl Announcement {
    /// For a recording that is called so; `None` if there is no standard error.
    pub(super) fn new(name: String) -> Option<Self> {
        standard_error().map(|file| Self { name, file })
    }

    /// Writes the line, unless standard error is another file by now or would block.
    pub(super) fn write(&self, reason: EndReason, error: Option<&str>) {
        let mut ready = libc::pollfd { fd: STANDARD_ERROR, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one valid entry.
        let is_ready = unsafe { libc::poll(&raw mut ready, 1, 0) } == 1 && ready.revents & libc::POLLOUT != 0;
        if standard_error() != Some(self.file) || !is_ready {
            return;
        }
        let trouble = error.map(|error| format!(", which could not be written whole: {error}")).unwrap_or_default();
        let line = format!("stackweave: {reason}; recorded in {}{trouble}\n", self.name);
        // SAFETY: the bytes outlive the call.
        unsafe { libc::write(STANDARD_ERROR, line.as_ptr().cast(), line.len()) };
    }
}

/// Which file standard error is.
fn standard_error() -> Option<(libc::dev_t, libc::ino_t)> {
    // SAFETY: an all-zero value is a place for one, and the call gets that place.
    unsafe {
        let mut file: libc::stat = mem::zeroed();
        (libc::fstat(STANDARD_ERROR, &raw mut file) == 0).then_some((file.st_dev, file.st_ino))
    }
}
