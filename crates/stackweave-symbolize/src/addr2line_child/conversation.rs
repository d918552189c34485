//! A child process that is written to and read from at once, by a deadline, and that never outlives its owner.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, Signal, kill_process_group};

use super::error::ChildError;

/// How much of the child's error output is kept.
const MAX_COMPLAINT: usize = 512;

/// A child process.
///
/// It reads and writes a socket: writing to a pipe whose reader is gone would raise a signal in the host program.
/// It leads a process group of its own, so that what it started is ended with it.
#[derive(Debug)]
pub(super) struct Conversation {
    child: Child,
    /// The process that started it. A forked copy of that process has no say over the child.
    owner: u32,
    is_over: bool,
    stream: UnixStream,
    errors: Option<UnixStream>,
    complaint: Vec<u8>,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The listener had heard enough.
    Heard,
    /// The child has closed its output.
    Closed,
}

impl Conversation {
    pub(super) fn start(program: &Path, arguments: &[&OsStr]) -> Result<Self, ChildError> {
        let (stream, theirs) = UnixStream::pair()?;
        let (errors, their_errors) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        errors.set_nonblocking(true)?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).env("LC_ALL", "C");
        // The child must not ask servers that the user has not allowed to be asked.
        command.env_remove("DEBUGINFOD_URLS");
        command.stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)));
        command.stdout(Stdio::from(OwnedFd::from(theirs)));
        command.stderr(Stdio::from(OwnedFd::from(their_errors)));
        let child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => ChildError::NoProgram(program.to_owned()),
            kind => ChildError::NotStarted(program.to_owned(), kind),
        })?;
        let owner = std::process::id();
        Ok(Self { child, owner, is_over: false, stream, errors: Some(errors), complaint: Vec::new() })
    }

    /// Writes `request` and hands what the child writes to `listen`, until that has heard enough.
    pub(super) fn exchange(
        &mut self,
        mut request: &[u8],
        limit: Duration,
        listen: &mut dyn FnMut(&[u8]) -> Result<bool, ChildError>,
    ) -> Result<End, ChildError> {
        if std::process::id() != self.owner {
            return Err(ChildError::OfAnotherProcess);
        }
        let deadline = Instant::now() + limit;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ChildError::Hung(limit));
            }
            self.wait(!request.is_empty(), left)?;
            self.read_complaint();
            if !request.is_empty() {
                let sent = send(&self.stream, request, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                match sent.map_err(io::Error::from) {
                    Ok(sent) => request = &request[sent..],
                    Err(error) if is_later(&error) => {}
                    // It reads no more. What it has written is still to be read, up to its end.
                    Err(_) => request = &[],
                }
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(End::Closed),
                Ok(length) if listen(&buffer[..length])? => return Ok(End::Heard),
                Ok(_) => {}
                Err(error) if is_later(&error) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(End::Closed),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until something can be read or, if wanted, written.
    fn wait(&self, is_writing: bool, left: Duration) -> Result<(), ChildError> {
        let wanted = if is_writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let timeout = Timespec::try_from(left).ok();
        let stream = PollFd::new(&self.stream, wanted);
        let polled = match &self.errors {
            Some(errors) => poll(&mut [stream, PollFd::new(errors, PollFlags::IN)], timeout.as_ref()),
            None => poll(&mut [stream], timeout.as_ref()),
        };
        match polled.map_err(io::Error::from) {
            Err(error) if !is_later(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Keeps the beginning of what the child writes to its error output, and lets it write on.
    fn read_complaint(&mut self) {
        let mut buffer = [0; 4096];
        while let Some(errors) = &mut self.errors {
            match errors.read(&mut buffer) {
                Ok(length @ 1..) => {
                    let room = MAX_COMPLAINT.saturating_sub(self.complaint.len()).min(length);
                    self.complaint.extend_from_slice(&buffer[..room]);
                }
                Err(error) if is_later(&error) => return,
                _ => self.errors = None,
            }
        }
    }

    /// Ends the child, and says how it had died if it was dead already.
    pub(super) fn death(&mut self) -> ChildError {
        let status = self.end();
        self.read_complaint();
        ChildError::Died { status, complaint: String::from_utf8_lossy(self.complaint.trim_ascii()).into_owned() }
    }

    /// Ends the child and all it has started, and reaps it.
    pub(super) fn end(&mut self) -> String {
        if self.is_over || std::process::id() != self.owner {
            return "ended before".to_owned();
        }
        self.is_over = true;
        // Until it is reaped its id is taken, so the group is its own even if it is dead.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        self.child.wait().map_or_else(|error| error.kind().to_string(), |status| status.to_string())
    }

    #[cfg(test)]
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
