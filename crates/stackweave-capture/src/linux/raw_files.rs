//! Files by system calls only: no allocation, no lock, async-signal-safe.

use core::ffi::{CStr, c_int};
use core::fmt::{self, Write};

/// The size of the buffer for reading files.
pub(crate) const SCRATCH: usize = 8192;

/// Returns the last error number.
pub(crate) fn last_error() -> c_int {
    // SAFETY: the address of this thread's error number.
    unsafe { *libc::__errno_location() }
}

/// A file that is open for reading. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct RawFile(c_int);

impl RawFile {
    /// Opens a file. Fails with an error number.
    pub(crate) fn open(path: &CStr) -> Result<Self, c_int> {
        // SAFETY: the path ends with a zero byte.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if fd < 0 { Err(last_error()) } else { Ok(Self(fd)) }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, c_int> {
        loop {
            // SAFETY: the buffer has that length.
            match unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) } {
                -1 if last_error() == libc::EINTR => {}
                -1 => return Err(last_error()),
                length => return Ok(length.cast_unsigned()),
            }
        }
    }

    /// Returns the next entries of a folder, as `getdents64` writes them; none at the end.
    pub(crate) fn read_entries<'a>(&mut self, buffer: &'a mut [u8; SCRATCH]) -> Result<&'a [u8], c_int> {
        // SAFETY: the buffer has that length.
        let length = unsafe { libc::syscall(libc::SYS_getdents64, self.0, buffer.as_mut_ptr(), buffer.len()) };
        usize::try_from(length).ok().and_then(|length| buffer.get(..length)).ok_or_else(last_error)
    }

    /// Calls `each` with each line, without its end. A line longer than the buffer is split.
    pub(crate) fn for_each_line(&mut self, buffer: &mut [u8; SCRATCH], mut each: impl FnMut(&[u8])) {
        let mut filled = 0;
        loop {
            let read = self.read(&mut buffer[filled..]).unwrap_or(0);
            let end = filled + read;
            let mut start = 0;
            while let Some(length) = buffer[start..end].iter().position(|byte| *byte == b'\n') {
                each(&buffer[start..start + length]);
                start += length + 1;
            }
            if read == 0 || (start == 0 && end == SCRATCH) {
                each(&buffer[start..end]);
                start = end;
            }
            if read == 0 {
                return;
            }
            buffer.copy_within(start..end, 0);
            filled = end - start;
        }
    }
}

impl Drop for RawFile {
    fn drop(&mut self) {
        // SAFETY: this value owns the descriptor.
        unsafe { libc::close(self.0) };
    }
}

/// A short path that ends with a zero byte.
#[derive(Debug)]
pub(crate) struct Path {
    bytes: [u8; 64],
    length: usize,
}

impl Path {
    /// Formats a path; `None` if it is too long.
    pub(crate) fn new(path: fmt::Arguments<'_>) -> Option<Self> {
        let mut new = Self { bytes: [0; 64], length: 0 };
        new.write_fmt(path).ok()?;
        Some(new)
    }

    pub(crate) fn as_c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).ok()
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        if end >= self.bytes.len() {
            return Err(fmt::Error);
        }
        self.bytes[self.length..end].copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_across_the_buffers_end_are_complete() {
        let path = std::env::temp_dir().join(format!("stackweave-lines-{}", std::process::id()));
        let lines: Vec<String> = (0..3000).map(|number| "x".repeat(number % 97) + &number.to_string()).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let mut read = Vec::new();
        let each = |line: &[u8]| read.push(String::from_utf8(line.to_vec()).unwrap());
        RawFile::open(&name).unwrap().for_each_line(&mut [0; SCRATCH], each);
        std::fs::remove_file(path).unwrap();
        assert_eq!(read, lines);
    }

    #[test]
    fn a_path_that_is_too_long_is_none() {
        assert!(Path::new(format_args!("{:63}", "/")).is_some());
        assert!(Path::new(format_args!("{:64}", "/")).is_none());
        assert_eq!(RawFile::open(c"/no/such/file").unwrap_err(), libc::ENOENT);
    }
}
