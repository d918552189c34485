//! The thread of a watchdog.
//!
//! After its start, it allocates nothing and takes no lock except its own, which no thread holds while a dump is
//! written.

use core::ffi::c_int;
use core::fmt::Write;
use core::mem::zeroed;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use crate::dump::{DumpError, DumpOptions};
use crate::platform::all_threads::dump_all_threads;
use crate::platform::dump_signal;
use crate::platform::fd_writer::FdWriter;
use crate::platform::raw_files::last_error;
use crate::watchdog::WatchdogOptions;

#[derive(Debug)]
pub(crate) struct WatchThread {
    shared: Arc<Shared>,
    /// The process of the thread.
    process: u32,
}

#[derive(Debug)]
struct Shared {
    options: WatchdogOptions,
    fd: OwnedFd,
    dumps: AtomicU64,
    state: Mutex<WatchState>,
    changed: Condvar,
}

#[derive(Debug)]
struct WatchState {
    /// `None`: it has dumped, and waits for the next reset.
    deadline: Option<Instant>,
    is_cancelled: bool,
    has_ended: bool,
}

impl WatchThread {
    pub(crate) fn start(fd: c_int, options: WatchdogOptions) -> Result<Self, DumpError> {
        dump_signal::prepare_dumps()?;
        // SAFETY: creates a new descriptor.
        let fd = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
        if fd < 0 {
            return Err(DumpError::NotWritten(last_error()));
        }
        // SAFETY: the descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let state = WatchState { deadline: deadline(&options), is_cancelled: false, has_ended: false };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { options, fd, dumps: AtomicU64::new(0), state, changed });
        let watching = Arc::clone(&shared);
        let _blocked = BlockedSignals::block(dump_signal::signal()?);
        // The thread is not joined, because a forked child could not join it.
        let thread = Builder::new().name("stackweave-dog".to_owned()).spawn(move || watching.watch());
        thread.map_err(|_| DumpError::NoThread)?;
        Ok(Self { shared, process: std::process::id() })
    }

    pub(crate) fn reset(&self) {
        if self.is_here() {
            self.shared.lock().deadline = deadline(&self.shared.options);
            self.shared.changed.notify_all();
        }
    }

    pub(crate) fn cancel(&self) {
        if !self.is_here() {
            return;
        }
        let mut state = self.shared.lock();
        state.is_cancelled = true;
        self.shared.changed.notify_all();
        while !state.has_ended {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn dumps(&self) -> u64 {
        self.shared.dumps.load(Ordering::Acquire)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_here() && !self.shared.lock().is_cancelled
    }

    /// Returns whether this is the process of the thread. In a forked child, the lock may be held forever.
    fn is_here(&self) -> bool {
        std::process::id() == self.process
    }
}

fn deadline(options: &WatchdogOptions) -> Option<Instant> {
    Instant::now().checked_add(options.timeout)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut state = self.lock();
        while !state.is_cancelled {
            let left = state.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => {
                    state.deadline = if self.options.repeat { deadline(&self.options) } else { None };
                    drop(state);
                    self.dump();
                    self.lock()
                }
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.has_ended = true;
        self.changed.notify_all();
    }

    fn dump(&self) {
        let fd = self.fd.as_raw_fd();
        let mut out = FdWriter::new(fd);
        let _ = writeln!(out, "Stackweave: watchdog not reset for {:?}", self.options.timeout);
        out.flush();
        let _ = dump_all_threads(fd, &DumpOptions { calling_thread: None, ..DumpOptions::default() });
        self.dumps.fetch_add(1, Ordering::Release);
        if self.options.exit {
            // SAFETY: ends the process without running any of its code.
            unsafe { libc::_exit(1) };
        }
    }
}

/// Blocks signals on this thread, and so on the threads that it starts, until it is dropped.
struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn block(signal: c_int) -> Self {
        // SAFETY: all-zero sets are valid.
        let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { (zeroed(), zeroed()) };
        // SAFETY: the sets are locals.
        unsafe {
            libc::sigfillset(&raw mut set);
            libc::sigdelset(&raw mut set, signal);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, &raw mut before);
        }
        Self { before }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: restores the previous set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}
