//! The queried process, as `/proc` describes it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Error, ErrorKind};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use stackweave_capture::stack_query::{SIGNAL_MAPPING_PREFIX, StackQuery};

use super::ReportError;
use super::report_file::ReportFile;
use super::signal_status::SignalStatus;

/// A process that advertises that it replies to queries.
#[derive(Debug)]
pub(super) struct Reporter {
    process: u32,
    signal: i32,
    /// A handle of exactly this process, even if its id is reused. `None` on kernels before 5.3.
    handle: Option<OwnedFd>,
}

impl Reporter {
    /// Checks whether the process replies to queries.
    pub(super) fn find(process: u32) -> Result<Self, ReportError> {
        let handle = open_handle(process);
        let maps = fs::read(format!("/proc/{process}/maps")).map_err(|error| read_error(&error))?;
        let signals = advertised_signals(&maps);
        let status = SignalStatus::of_process(process)?;
        // Two copies of Stackweave may be loaded: the later one is more likely to still have its handler.
        let handled = signals.iter().rev().find(|signal| status.handles(**signal));
        match (handled, signals.last()) {
            (Some(signal), _) => Ok(Self { process, signal: *signal, handle }),
            (None, Some(signal)) => Err(ReportError::NoHandler(*signal)),
            // A process that is ending has no maps.
            (None, None) if status.has_ended() => Err(ReportError::NoProcess),
            (None, None) => Err(ReportError::NotLoaded),
        }
    }

    /// Returns the states of its threads.
    pub(super) fn states(&self) -> BTreeMap<u32, char> {
        self.threads().filter_map(|(task, status)| Some((task, status?.state))).collect()
    }

    fn threads(&self) -> impl Iterator<Item = (u32, Option<SignalStatus>)> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process)).into_iter().flatten().flatten();
        let numbers = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        numbers.map(|task: u32| (task, SignalStatus::of_thread(self.process, task)))
    }

    /// Sends the query. The signal would end a process without a handler, so the handler is checked immediately
    /// before.
    pub(super) fn send(&self, file: &ReportFile) -> Result<(), ReportError> {
        let status = SignalStatus::of_process(self.process)?;
        if status.is_in_other_namespace {
            return Err(ReportError::OtherNamespace);
        }
        if matches!(status.state, 'T' | 't') {
            return Err(ReportError::Stopped);
        }
        if !SignalStatus::of_process(self.process)?.handles(self.signal) {
            return Err(ReportError::NoHandler(self.signal));
        }
        match self.queue(&information(self.signal, file.query())) {
            Ok(()) => Ok(()),
            Err(libc::ESRCH) => Err(ReportError::NoProcess),
            Err(error) => Err(ReportError::NotSent(error)),
        }
    }

    fn queue(&self, information: &libc::siginfo_t) -> Result<(), i32> {
        let information = ptr::from_ref(information);
        // SAFETY: the information is completely initialised; both calls take numbers and read only that.
        let sent = unsafe {
            match &self.handle {
                Some(handle) => {
                    libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), self.signal, information, 0)
                }
                None => libc::syscall(libc::SYS_rt_sigqueueinfo, self.process, self.signal, information),
            }
        };
        if sent == 0 { Ok(()) } else { Err(Error::last_os_error().raw_os_error().unwrap_or(0)) }
    }

    /// Returns why there was no reply in that time.
    pub(super) fn silence_reason(&self, timeout: Duration) -> ReportError {
        if SignalStatus::of_process(self.process).is_ok_and(|status| status.has_ended()) {
            return ReportError::NoProcess;
        }
        let threads: Vec<SignalStatus> = self.threads().filter_map(|(_, status)| status).collect();
        if threads.is_empty() {
            ReportError::NoProcess
        } else if threads.iter().all(|status| status.blocks(self.signal)) {
            ReportError::Blocked(self.signal)
        } else {
            ReportError::Silent(self.signal, timeout)
        }
    }
}

fn open_handle(process: u32) -> Option<OwnedFd> {
    // SAFETY: takes numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the descriptor is new and has no other owner.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn read_error(error: &Error) -> ReportError {
    match error.kind() {
        ErrorKind::PermissionDenied => ReportError::NotAllowed,
        _ => ReportError::NoProcess,
    }
}

/// Returns the signals in the names of mappings.
fn advertised_signals(maps: &[u8]) -> Vec<i32> {
    let maps = String::from_utf8_lossy(maps);
    let signal = |line: &str| {
        let (_, name) = line.split_once(" /memfd:")?;
        let signal = name.strip_prefix(SIGNAL_MAPPING_PREFIX)?.strip_suffix(" (deleted)")?.parse().ok()?;
        (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal).then_some(signal)
    };
    maps.lines().filter_map(signal).collect()
}

/// The beginning of the `siginfo_t` of a queued signal, on 64-bit Linux.
#[repr(C)]
struct QueuedSignalInfo {
    signal: i32,
    error: i32,
    code: i32,
    padding: i32,
    process: i32,
    user: u32,
    value: u64,
}

fn information(signal: i32, query: StackQuery) -> libc::siginfo_t {
    // SAFETY: `getpid` and `getuid` have no preconditions.
    let (process, user) = unsafe { (libc::getpid(), libc::getuid()) };
    let value = query.to_value();
    let queued = QueuedSignalInfo { signal, error: 0, code: libc::SI_QUEUE, padding: 0, process, user, value };
    // SAFETY: an all-zero `siginfo_t` is valid, larger than `QueuedSignalInfo` and has the same alignment.
    unsafe {
        let mut information: libc::siginfo_t = zeroed();
        (&raw mut information).cast::<QueuedSignalInfo>().write(queued);
        information
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signal_is_parsed_from_the_name_of_a_mapping() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 7                          /usr/lib/stackweave-answers-60\n\
                    7f02-7f03 ---s 00000000 00:01 1030                       /memfd:stackweave-answers-64 (deleted)\n\
                    7f04-7f05 ---s 00000000 00:01 1031                       /memfd:stackweave-answers-9 (deleted)\n\
                    7f06-7f07 ---s 00000000 00:01 1032                       /memfd:stackweave-answers-62 (deleted)\n";
        assert_eq!(advertised_signals(maps.as_bytes()), [64, 62]);
    }

    #[test]
    fn the_handler_reads_the_value_of_the_signal() {
        let query = StackQuery { descriptor: 5 };
        let information = information(64, query);
        // SAFETY: a queued signal has these fields.
        let (process, value) = unsafe { (information.si_pid(), information.si_value().sival_ptr.addr() as u64) };
        assert_eq!((information.si_code, process.cast_unsigned()), (libc::SI_QUEUE, std::process::id()));
        assert_eq!(StackQuery::from_value(value), Some(query));
        assert!(size_of::<QueuedSignalInfo>() <= size_of::<libc::siginfo_t>());
    }
}
