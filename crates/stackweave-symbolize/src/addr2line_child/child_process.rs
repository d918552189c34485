//! A child process with concurrent input and output, with a deadline, which never outlives its owner.

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

/// The number of bytes of the child's error output that are kept.
const MAX_ERROR_OUTPUT: usize = 512;

/// A child process.
///
/// It reads and writes a socket: writing to a pipe whose reader has ended would raise a signal in the host
/// program. It leads its own process group, so that processes it has started end with it.
#[derive(Debug)]
pub(super) struct ChildProcess {
    child: Child,
    /// The process that started it. A forked copy of that process does not control the child.
    owner: u32,
    is_over: bool,
    stream: UnixStream,
    errors: Option<UnixStream>,
    error_output: Vec<u8>,
}

/// The outcome of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeEnd {
    /// The handler has received all it needs.
    Finished,
    /// The child has closed its output.
    Closed,
}

impl ChildProcess {
    pub(super) fn start(program: &Path, arguments: &[&OsStr]) -> Result<Self, ChildError> {
        let (stream, child_end) = UnixStream::pair()?;
        let (errors, child_errors) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        errors.set_nonblocking(true)?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).env("LC_ALL", "C");
        // The child must not query servers without the user's permission.
        command.env_remove("DEBUGINFOD_URLS");
        command.stdin(Stdio::from(OwnedFd::from(child_end.try_clone()?)));
        command.stdout(Stdio::from(OwnedFd::from(child_end)));
        command.stderr(Stdio::from(OwnedFd::from(child_errors)));
        let child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => ChildError::NoProgram(program.to_owned()),
            kind => ChildError::NotStarted(program.to_owned(), kind),
        })?;
        let owner = std::process::id();
        Ok(Self { child, owner, is_over: false, stream, errors: Some(errors), error_output: Vec::new() })
    }

    /// Writes `request`, and passes the child's output to `handle_output` until that returns true.
    pub(super) fn exchange(
        &mut self,
        mut request: &[u8],
        limit: Duration,
        handle_output: &mut dyn FnMut(&[u8]) -> Result<bool, ChildError>,
    ) -> Result<ExchangeEnd, ChildError> {
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
            self.read_error_output();
            if !request.is_empty() {
                let sent = send(&self.stream, request, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                match sent.map_err(io::Error::from) {
                    Ok(sent) => request = &request[sent..],
                    Err(error) if is_later(&error) => {}
                    // The child reads no more. Continue reading its output to the end.
                    Err(_) => request = &[],
                }
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(ExchangeEnd::Closed),
                Ok(length) if handle_output(&buffer[..length])? => return Ok(ExchangeEnd::Finished),
                Ok(_) => {}
                Err(error) if is_later(&error) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(ExchangeEnd::Closed),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until output can be read or, if requested, input can be written.
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

    /// Keeps the beginning of the child's error output, and discards the rest, so that the child is not blocked.
    fn read_error_output(&mut self) {
        let mut buffer = [0; 4096];
        while let Some(errors) = &mut self.errors {
            match errors.read(&mut buffer) {
                Ok(length @ 1..) => {
                    let remaining = MAX_ERROR_OUTPUT.saturating_sub(self.error_output.len()).min(length);
                    self.error_output.extend_from_slice(&buffer[..remaining]);
                }
                Err(error) if is_later(&error) => return,
                _ => self.errors = None,
            }
        }
    }

    /// Ends the child, and returns how it died if it was already dead.
    pub(super) fn death(&mut self) -> ChildError {
        let status = self.end();
        self.read_error_output();
        ChildError::Died { status, error_output: String::from_utf8_lossy(self.error_output.trim_ascii()).into_owned() }
    }

    /// Ends the child and all processes it has started, and reaps it.
    pub(super) fn end(&mut self) -> String {
        if self.is_over || std::process::id() != self.owner {
            return "ended before".to_owned();
        }
        self.is_over = true;
        // Until the child is reaped, its id is in use, so the group belongs to it even if it is dead.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        self.child.wait().map_or_else(|error| error.kind().to_string(), |status| status.to_string())
    }

    #[cfg(test)]
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
