//! The memory file to which a reply is written.

use std::ffi::CString;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use stackweave_capture::stack_query::{QUERY_FILE_PREFIX, StackQuery};

use super::ReportError;

#[derive(Debug)]
pub(super) struct ReportFile(File);

impl ReportFile {
    /// Creates a file for the reply of this process.
    pub(super) fn new(process: u32) -> Result<Self, ReportError> {
        let name =
            CString::new(format!("{QUERY_FILE_PREFIX}{process}")).map_err(|_| ReportError::NotSent(libc::EINVAL))?;
        // SAFETY: the name ends with a zero byte.
        let made = |flags| unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
        // Kernels before 6.3 do not know the flag, and some later ones create no memory files without it.
        let fd = [libc::MFD_NOEXEC_SEAL, 0].into_iter().map(made).find(|fd| *fd >= 0);
        let fd = fd.ok_or_else(|| ReportError::NotSent(Error::last_os_error().raw_os_error().unwrap_or(0)))?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    pub(super) fn query(&self) -> StackQuery {
        StackQuery { descriptor: self.0.as_raw_fd().cast_unsigned() }
    }

    /// Returns what has been written so far.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = vec![0; self.0.metadata().map_or(0, |metadata| usize::try_from(metadata.len()).unwrap_or(0))];
        let read = self.0.read_at(&mut text, 0).unwrap_or(0);
        text.truncate(read);
        text
    }
}
