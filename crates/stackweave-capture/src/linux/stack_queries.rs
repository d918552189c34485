//! Replies to stack queries from other processes, which `stack_query.rs` describes.
//!
//! Runs in the signal's handler: no allocation, no lock, no thread, async-signal-safe. The reply goes to a memory
//! file, where a write never blocks.

use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::mem::zeroed;

use crate::dump::DumpOptions;
use crate::platform::all_threads::gather;
use crate::platform::fd_writer::FdWriter;
use crate::platform::raw_files::Path;
use crate::platform::thread_lines::write_thread_lines;
use crate::stack_query::{QUERY_FILE_PREFIX, REPLY_VERSION, ReplyLine, StackQuery};

/// Returns the query of a signal and the process that sent it; `None` if the signal belongs to a dump, or is no
/// query.
///
/// # Safety
/// `info` is the argument of a handler with `SA_SIGINFO`.
pub(crate) unsafe fn query_in(info: *const libc::siginfo_t) -> Option<(c_int, StackQuery)> {
    // SAFETY: the caller's promise; a queued signal has these three.
    let (code, value, process) = unsafe { ((*info).si_code, (*info).si_value(), (*info).si_pid()) };
    if code != libc::SI_QUEUE {
        return None;
    }
    Some((process, StackQuery::from_value(value.sival_ptr.addr() as u64)?))
}

/// Replies to a query, if its file is valid and can be opened.
///
/// # Safety
/// `context` is the context of the handler that is running.
pub(crate) unsafe fn answer_query(process: c_int, query: StackQuery, context: *const c_void) {
    let Some(file) = ReplyFile::open(process, query) else { return };
    let mut out = FdWriter::new(file.0);
    // SAFETY: `getpid` has no preconditions.
    let own = unsafe { libc::getpid() };
    let _ = writeln!(out, "{} {REPLY_VERSION} {own}", ReplyLine::Answer.as_str());
    let result = gather(Some(context), &DumpOptions::default(), |gathered| {
        for thread in gathered.threads() {
            let _ = write_thread_lines(&mut out, &thread);
        }
        gathered.signalled.omitted()
    });
    let _ = match result {
        Ok(0) => Ok(()),
        Ok(more) => writeln!(out, "{} {more}", ReplyLine::More.as_str()),
        Err(reason) => writeln!(out, "{} {reason}", ReplyLine::Refused.as_str()),
    };
    let _ = writeln!(out, "{}", ReplyLine::End.as_str());
    out.flush();
}

/// The file for the reply, until it is dropped.
struct ReplyFile(c_int);

impl ReplyFile {
    /// Opens the file. `None` if there is no such file for this process: the signal only contains a process
    /// number, which may belong to another process by now.
    fn open(process: c_int, query: StackQuery) -> Option<Self> {
        if process <= 0 {
            return None;
        }
        let path = Path::new(format_args!("/proc/{process}/fd/{}", query.descriptor))?;
        let path = path.as_c_str()?;
        // SAFETY: `getpid` has no preconditions.
        let own = unsafe { libc::getpid() };
        let expected = Path::new(format_args!("/memfd:{QUERY_FILE_PREFIX}{own} (deleted)"))?;
        let mut target = [0_u8; 64];
        // SAFETY: the path ends with a zero byte, and the buffer has that length.
        let length = unsafe { libc::readlink(path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
        if target.get(..usize::try_from(length).ok()?) != Some(expected.as_c_str()?.to_bytes()) {
            return None;
        }
        // SAFETY: the path ends with a zero byte.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) };
        let file = (fd >= 0).then_some(Self(fd))?;
        file.is_of_this_user_or_root().then_some(file)
    }

    fn is_of_this_user_or_root(&self) -> bool {
        // SAFETY: an all-zero `stat` is valid.
        let mut status: libc::stat = unsafe { zeroed() };
        // SAFETY: the descriptor is open.
        let is_known = unsafe { libc::fstat(self.0, &raw mut status) == 0 };
        // SAFETY: `geteuid` has no preconditions.
        let user = unsafe { libc::geteuid() };
        let is_file = status.st_mode & libc::S_IFMT == libc::S_IFREG && status.st_nlink == 0 && status.st_size == 0;
        is_known && is_file && (status.st_uid == user || status.st_uid == 0)
    }
}

impl Drop for ReplyFile {
    fn drop(&mut self) {
        // SAFETY: this value owns the descriptor.
        unsafe { libc::close(self.0) };
    }
}
