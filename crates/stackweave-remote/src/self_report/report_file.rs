//! The file in memory that an answer is written to.

use std::ffi::CString;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use stackweave_capture::question::{QUESTION, Question};

use super::NoReport;

#[derive(Debug)]
pub(super) struct ReportFile(File);

impl ReportFile {
    /// A file for the answer of this process.
    pub(super) fn new(process: u32) -> Result<Self, NoReport> {
        let name = CString::new(format!("{QUESTION}{process}")).map_err(|_| NoReport::NotSent(libc::EINVAL))?;
        // SAFETY: a name that ends with a zero.
        let made = |flags| unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
        // Kernels before 6.3 don't know the flag, some later ones make no files without it.
        let fd = [libc::MFD_NOEXEC_SEAL, 0].into_iter().map(made).find(|fd| *fd >= 0);
        let fd = fd.ok_or_else(|| NoReport::NotSent(Error::last_os_error().raw_os_error().unwrap_or(0)))?;
        // SAFETY: new, and ours.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    pub(super) fn question(&self) -> Question {
        Question { descriptor: self.0.as_raw_fd().cast_unsigned() }
    }

    /// What has been written so far.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = vec![0; self.0.metadata().map_or(0, |metadata| usize::try_from(metadata.len()).unwrap_or(0))];
        let read = self.0.read_at(&mut text, 0).unwrap_or(0);
        text.truncate(read);
        text
    }
}
