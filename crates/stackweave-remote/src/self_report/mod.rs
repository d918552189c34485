//! Stacks that a process reports itself: one that has loaded Stackweave, where ptrace is not allowed.
//!
//! `stackweave_capture::stack_query` describes the protocol. A process that does not support it is never sent a
//! signal, which would end it.

mod reply_parser;
mod report;
mod report_file;
mod reporter;
mod signal_status;
mod stacks;

use std::time::{Duration, Instant};

pub use report::{ReportedFrame, ReportedThread, SelfReport};

use reply_parser::ParsedReply;
use report_file::ReportFile;
use reporter::Reporter;
pub(crate) use stacks::stacks_of;

/// The reason why a process has not reported its stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// There is no such process.
    #[error("there is no such process")]
    NoProcess,
    /// Its `/proc` can't be read: it belongs to another user.
    #[error("it belongs to another user")]
    NotAllowed,
    /// It has not loaded Stackweave, or was configured not to reply.
    #[error("it has not imported stackweave, or was started with STACKWEAVE_ANSWERS=0")]
    NotLoaded,
    /// Another handler, or none, has replaced Stackweave's.
    #[error("it no longer handles signal {0}, which requests its stacks")]
    NoHandler(i32),
    /// It can't see the querying process.
    #[error("it is in another PID namespace: run the command inside its container")]
    OtherNamespace,
    /// It is stopped, by a debugger or by Ctrl-Z.
    #[error("it is stopped")]
    Stopped,
    /// The signal can't reach any of its threads.
    #[error("all its threads block signal {0}, which requests its stacks")]
    Blocked(i32),
    /// The query could not be sent: the error number.
    #[error("it can't be queried: {}", std::io::Error::from_raw_os_error(*.0))]
    NotSent(i32),
    /// The process has not replied to this signal in that time.
    #[error("it has not answered within {1:?}: it may have replaced the handler of signal {0}")]
    Silent(i32, Duration),
    /// The process reports why it does not reply.
    #[error("it refused: {0}")]
    Refused(String),
    /// The reply is malformed.
    #[error("its reply is malformed: {0}")]
    Unreadable(String),
}

impl ReportError {
    /// Returns whether the process does not support queries.
    pub(crate) fn is_of_others(&self) -> bool {
        matches!(self, Self::NoProcess | Self::NotAllowed | Self::NotLoaded)
    }
}

/// Queries a process of this user that has loaded Stackweave for its stacks, and waits for the reply.
///
/// A signal interrupts its threads: system calls continue, or end with `EINTR` where the kernel never restarts
/// them (`nanosleep`, `poll`, `epoll_wait`); Python's own functions retry them.
pub fn request_report(process: u32, timeout: Duration) -> Result<SelfReport, ReportError> {
    let end = Instant::now() + timeout;
    let reporter = Reporter::find(process)?;
    loop {
        let file = ReportFile::new(process)?;
        let states = reporter.states();
        reporter.send(&file)?;
        match wait(&file, end) {
            ParsedReply::Complete(mut reply) if reply.process == process => {
                reply.add_states(process, &states);
                return Ok(reply);
            }
            ParsedReply::Complete(reply) => {
                return Err(ReportError::Unreadable(format!("it is about process {}", reply.process)));
            }
            // Another process queries it, or it is dumping its threads.
            ParsedReply::Refused(_) if Instant::now() < end => std::thread::sleep(FIRST_PAUSE),
            ParsedReply::Refused(reason) => return Err(ReportError::Refused(reason)),
            ParsedReply::Unreadable(what) => return Err(ReportError::Unreadable(what)),
            ParsedReply::Partial => return Err(reporter.silence_reason(timeout)),
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Waits until the reply is complete, by polling: there is no way to wait for a memory file.
fn wait(file: &ReportFile, end: Instant) -> ParsedReply {
    let mut pause = FIRST_PAUSE;
    loop {
        let read = reply_parser::read(&file.text());
        if !matches!(read, ParsedReply::Partial) || Instant::now() >= end {
            return read;
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}
