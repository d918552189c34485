//! A line on the terminal that names the recording when a signal ends the program.

use std::mem;

use crate::file::EndReason;

const STANDARD_ERROR: libc::c_int = 2;

/// The line to write when a signal ends the program, and its destination.
#[derive(Debug)]
pub(super) struct Announcement {
    /// The name of the recording.
    name: String,
    /// The identity of the file of standard error, which the program may replace.
    file: (libc::dev_t, libc::ino_t),
}

impl Announcement {
    /// Returns an announcement with this name; `None` if there is no standard error.
    pub(super) fn new(name: String) -> Option<Self> {
        standard_error().map(|file| Self { name, file })
    }

    /// Writes the line, unless standard error has been replaced or would block.
    pub(super) fn write(&self, reason: EndReason, error: Option<&str>) {
        let mut ready = libc::pollfd { fd: STANDARD_ERROR, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one valid entry.
        let is_ready = unsafe { libc::poll(&raw mut ready, 1, 0) } == 1 && ready.revents & libc::POLLOUT != 0;
        if standard_error() != Some(self.file) || !is_ready {
            return;
        }
        let note = error.map(|error| format!(", which is incomplete: {error}")).unwrap_or_default();
        let line = format!("stackweave: {reason}; recorded in {}{note}\n", self.name);
        // SAFETY: the bytes outlive the call.
        unsafe { libc::write(STANDARD_ERROR, line.as_ptr().cast(), line.len()) };
    }
}

/// Returns the identity of the file of standard error.
fn standard_error() -> Option<(libc::dev_t, libc::ino_t)> {
    // SAFETY: zeros are a valid `stat`, and the pointer is valid for writes.
    unsafe {
        let mut file: libc::stat = mem::zeroed();
        (libc::fstat(STANDARD_ERROR, &raw mut file) == 0).then_some((file.st_dev, file.st_ino))
    }
}
