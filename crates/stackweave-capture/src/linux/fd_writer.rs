//! Writes text to a file descriptor with `write` only: no allocation, no lock, async-signal-safe.

use core::ffi::c_int;
use core::fmt;

use crate::platform::raw_files::last_error;

const SIZE: usize = 1024;
/// The time to wait for a full descriptor that does not block.
const PATIENCE_MS: c_int = 1000;

/// A small buffer for a descriptor. After an error, nothing more is written.
#[derive(Debug)]
pub(crate) struct FdWriter {
    fd: c_int,
    buffer: [u8; SIZE],
    length: usize,
    error: Option<c_int>,
}

impl FdWriter {
    pub(crate) fn new(fd: c_int) -> Self {
        Self { fd, buffer: [0; SIZE], length: 0, error: None }
    }

    /// Returns the number of the first error.
    pub(crate) fn error(&self) -> Option<c_int> {
        self.error
    }

    pub(crate) fn flush(&mut self) {
        let mut start = 0;
        while start < self.length && self.error.is_none() {
            let rest = &self.buffer[start..self.length];
            // SAFETY: the slice is that long.
            let written = unsafe { libc::write(self.fd, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(written) => start += written,
                Err(_) => self.error = self.after_failure(last_error()),
            }
        }
        self.length = 0;
    }

    /// Returns the error, unless it is temporary: then waits until it is over.
    fn after_failure(&self, error: c_int) -> Option<c_int> {
        if error == libc::EINTR {
            return None;
        }
        if error == libc::EAGAIN {
            let mut wanted = libc::pollfd { fd: self.fd, events: libc::POLLOUT, revents: 0 };
            // SAFETY: one descriptor, as the count says.
            if unsafe { libc::poll(&raw mut wanted, 1, PATIENCE_MS) } > 0 {
                return None;
            }
        }
        Some(error)
    }
}

impl fmt::Write for FdWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if self.length == SIZE {
                self.flush();
            }
            let (now, later) = rest.split_at(rest.len().min(SIZE - self.length));
            self.buffer[self.length..][..now.len()].copy_from_slice(now);
            self.length += now.len();
            rest = later;
        }
        if self.error.is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn everything_is_written_in_order_even_to_a_full_nonblocking_pipe() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        // SAFETY: sets a flag of a descriptor that is open.
        unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        let expected: String =
            (0..50_000).flat_map(|number: u32| number.to_string().chars().chain([',']).collect::<Vec<_>>()).collect();
        let text = expected.clone();
        let writing = std::thread::spawn(move || {
            let mut out = FdWriter::new(writer.as_raw_fd());
            text.split_inclusive(',').for_each(|piece| out.write_str(piece).unwrap());
            out.flush();
            assert_eq!(out.error(), None);
        });
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        writing.join().unwrap();
        assert!(read == expected);
    }

    #[test]
    fn the_first_error_is_kept() {
        let mut out = FdWriter::new(-1);
        write!(out, "{:2000}", 1).unwrap_err();
        assert_eq!(out.error(), Some(libc::EBADF));
    }
}
