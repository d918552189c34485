//! Stacks that a process writes down itself: one that has Stackweave loaded, where ptrace is not allowed.
//!
//! `stackweave_capture::question` says how a question is put. A process that would not understand it is never sent a signal,
//! which would end it.

mod reading;
mod report;
mod report_file;
mod reporter;
mod stacks;
mod status;

use std::time::{Duration, Instant};

pub use report::{ReportedFrame, ReportedThread, SelfReport};

use reading::Read;
use report_file::ReportFile;
use reporter::Reporter;
pub(crate) use stacks::stacks_of;

/// Why a process has not said where its threads are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoReport {
    /// There is no such process.
    #[error("there is no such process")]
    NoProcess,
    /// Its `/proc` can't be read: it belongs to another user.
    #[error("it belongs to another user")]
    NotAllowed,
    /// It has not loaded Stackweave, or was told not to answer.
    #[error("it has not imported stackweave, or was started with STACKWEAVE_ANSWERS=0")]
    NotLoaded,
    /// It has put another handler in the place of ours, or none.
    #[error("it no longer handles signal {0}, by which it could be asked")]
    NoHandler(i32),
    /// It can't see who asks.
    #[error("it is in another PID namespace: ask from inside its container")]
    OtherNamespace,
    /// It is stopped, by a debugger or by Ctrl-Z.
    #[error("it is stopped")]
    Stopped,
    /// The signal can't reach any of its threads.
    #[error("all its threads block signal {0}, by which it could be asked")]
    Blocked(i32),
    /// The question could not be put: the error number.
    #[error("it can't be asked: {}", std::io::Error::from_raw_os_error(*.0))]
    NotSent(i32),
    /// There was no answer in that time to this signal.
    #[error("it has not answered within {1:?}: it may have a handler of its own for signal {0} by now")]
    Silent(i32, Duration),
    /// The process says why it gives none.
    #[error("it gives no answer: {0}")]
    Refused(String),
    /// It was not understood.
    #[error("its answer is not understood: {0}")]
    Unreadable(String),
}

impl NoReport {
    /// Whether the process is none that could be asked.
    pub(crate) fn is_of_others(&self) -> bool {
        matches!(self, Self::NoProcess | Self::NotAllowed | Self::NotLoaded)
    }
}

/// Asks a process of this user that has Stackweave loaded where its threads are, and waits for the answer.
///
/// Its threads are interrupted by a signal: system calls go on, or end with `EINTR` where the kernel never restarts them
/// (`nanosleep`, `poll`, `epoll_wait`), which Python's own functions try again.
pub fn request_report(process: u32, timeout: Duration) -> Result<SelfReport, NoReport> {
    let end = Instant::now() + timeout;
    let asked = Reporter::find(process)?;
    loop {
        let file = ReportFile::new(process)?;
        let states = asked.states();
        asked.send(&file)?;
        match wait(&file, end) {
            Read::Whole(mut answer) if answer.process == process => {
                answer.know(process, &states);
                return Ok(answer);
            }
            Read::Whole(answer) => {
                return Err(NoReport::Unreadable(format!("it speaks of process {}", answer.process)));
            }
            // Somebody else asks, or it dumps its threads just now.
            Read::Refused(_) if Instant::now() < end => std::thread::sleep(FIRST_PAUSE),
            Read::Refused(reason) => return Err(NoReport::Refused(reason)),
            Read::Unreadable(what) => return Err(NoReport::Unreadable(what)),
            Read::Partial => return Err(asked.why_silent(timeout)),
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Waits until the answer is whole. A file in memory can't be waited for, so it is looked at.
fn wait(file: &ReportFile, end: Instant) -> Read {
    let mut pause = FIRST_PAUSE;
    loop {
        let read = reading::read(&file.text());
        if !matches!(read, Read::Partial) || Instant::now() >= end {
            return read;
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}
