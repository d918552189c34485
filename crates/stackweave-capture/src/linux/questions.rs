//! Questions from other processes: `question.rs` says how they come.
//!
//! Runs in the signal's handler: no allocation, no lock, no thread, async-signal-safe. The answer goes to a file in memory,
//! where a write never blocks.

use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::mem::zeroed;

use crate::dump::DumpOptions;
use crate::platform::all_threads::gather;
use crate::platform::fd_writer::FdWriter;
use crate::platform::raw_files::Path;
use crate::platform::thread_lines::write_thread_lines;
use crate::question::{ANSWER_FORM, Line, QUESTION, Question};

/// What a signal asks, and who; `None` if it is one of our own, or nobody's question.
///
/// # Safety
/// `info` is what a handler with `SA_SIGINFO` was given.
pub(crate) unsafe fn question_in(info: *const libc::siginfo_t) -> Option<(c_int, Question)> {
    // SAFETY: passed on to the caller; a queued signal has these three.
    let (code, value, process) = unsafe { ((*info).si_code, (*info).si_value(), (*info).si_pid()) };
    if code != libc::SI_QUEUE {
        return None;
    }
    Some((process, Question::from_value(value.sival_ptr.addr() as u64)?))
}

/// Answers a question, if its file can be opened and is one for this.
///
/// # Safety
/// `context` is the context of the handler that is running.
pub(crate) unsafe fn answer_question(process: c_int, question: Question, context: *const c_void) {
    let Some(file) = AnswerFile::open(process, question) else { return };
    let mut out = FdWriter::new(file.0);
    // SAFETY: has no conditions.
    let own = unsafe { libc::getpid() };
    let _ = writeln!(out, "{} {ANSWER_FORM} {own}", Line::Answer.as_str());
    let result = gather(Some(context), &DumpOptions::default(), |gathered| {
        for thread in gathered.threads() {
            let _ = write_thread_lines(&mut out, &thread);
        }
        gathered.asked.left_out()
    });
    let _ = match result {
        Ok(0) => Ok(()),
        Ok(more) => writeln!(out, "{} {more}", Line::More.as_str()),
        Err(reason) => writeln!(out, "{} {reason}", Line::Refused.as_str()),
    };
    let _ = writeln!(out, "{}", Line::End.as_str());
    out.flush();
}

/// The file of who asks, until it is dropped.
struct AnswerFile(c_int);

impl AnswerFile {
    /// `None` where there is no such file for this process: the number of who asks is only what the signal said, and may mean
    /// another process by now.
    fn open(process: c_int, question: Question) -> Option<Self> {
        if process <= 0 {
            return None;
        }
        let path = Path::new(format_args!("/proc/{process}/fd/{}", question.descriptor))?;
        let path = path.as_c_str()?;
        // SAFETY: has no conditions.
        let own = unsafe { libc::getpid() };
        let expected = Path::new(format_args!("/memfd:{QUESTION}{own} (deleted)"))?;
        let mut target = [0_u8; 64];
        // SAFETY: a path that ends with a zero, and a buffer of that length.
        let length = unsafe { libc::readlink(path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
        if target.get(..usize::try_from(length).ok()?) != Some(expected.as_c_str()?.to_bytes()) {
            return None;
        }
        // SAFETY: a path that ends with a zero.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) };
        let file = (fd >= 0).then_some(Self(fd))?;
        file.is_of_this_user_or_root().then_some(file)
    }

    fn is_of_this_user_or_root(&self) -> bool {
        // SAFETY: an all-zero `stat` is a place for the answer.
        let mut status: libc::stat = unsafe { zeroed() };
        // SAFETY: the descriptor is open.
        let is_known = unsafe { libc::fstat(self.0, &raw mut status) == 0 };
        // SAFETY: has no conditions.
        let user = unsafe { libc::geteuid() };
        let is_file = status.st_mode & libc::S_IFMT == libc::S_IFREG && status.st_nlink == 0 && status.st_size == 0;
        is_known && is_file && (status.st_uid == user || status.st_uid == 0)
    }
}

impl Drop for AnswerFile {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(self.0) };
    }
}
