//! One dump: lists the threads, signals them, waits for them and writes their stacks.
//!
//! No allocation, no lock, no interpreter's lock, async-signal-safe: only system calls, and memory that was mapped
//! before.

use core::ffi::{c_int, c_void};
use core::fmt::Write;
use std::time::Instant;

use crate::dump::{DumpError, DumpOptions, DumpSummary};
use crate::platform::dump_lock::{DumpLock, DumpMemory};
use crate::platform::fd_writer::FdWriter;
use crate::platform::signalled_threads::{self, SignalledThreads};
use crate::platform::tasks::{self, TaskStatus};
use crate::platform::thread_text::{DumpedThread, write_thread};
use crate::request::CaptureRequest;

pub(crate) fn dump_all_threads(fd: c_int, options: &DumpOptions) -> Result<DumpSummary, DumpError> {
    written(fd, None, options)
}

/// # Safety
/// The same as for `capture_from_context`.
pub(crate) unsafe fn dump_all_threads_from_context(
    fd: c_int,
    context: *const c_void,
    options: &DumpOptions,
) -> Result<DumpSummary, DumpError> {
    written(fd, Some(context), options)
}

/// Writes the dump, or the reason why there is none.
fn written(fd: c_int, context: Option<*const c_void>, options: &DumpOptions) -> Result<DumpSummary, DumpError> {
    let mut out = FdWriter::new(fd);
    let result = dump(&mut out, context, options);
    if let Err(reason) = result {
        let _ = writeln!(out, "Stackweave: no dump of the threads: {reason}");
    }
    out.flush();
    match out.error() {
        Some(error) if result.is_ok() => Err(DumpError::NotWritten(error)),
        _ => result,
    }
}

fn dump(out: &mut FdWriter, context: Option<*const c_void>, options: &DumpOptions) -> Result<DumpSummary, DumpError> {
    gather(context, options, |gathered| {
        gathered.work.modules.read(&mut gathered.work.scratch);
        write_all(out, gathered, options)
    })
}

/// The threads that were signalled, and their replies.
#[derive(Debug)]
pub(crate) struct GatheredThreads<'a> {
    pub(crate) signalled: &'a SignalledThreads<'a>,
    pub(crate) work: &'a mut DumpMemory,
}

impl GatheredThreads<'_> {
    /// Returns the threads that still exist.
    pub(crate) fn threads(&self) -> impl Iterator<Item = DumpedThread> {
        let signal = self.signalled.signal();
        self.signalled.replies().filter_map(move |(task, reply)| {
            let status = if reply.is_none() { Some(TaskStatus::of(task, signal)?) } else { None };
            Some(DumpedThread { task, reply, status, signal, is_own: task == tasks::own() })
        })
    }
}

/// Signals all threads, and passes their replies to `write`.
pub(crate) fn gather<T>(
    context: Option<*const c_void>,
    options: &DumpOptions,
    write: impl FnOnce(&mut GatheredThreads<'_>) -> T,
) -> Result<T, DumpError> {
    let mut lock = DumpLock::try_lock().ok_or(DumpError::Busy)?;
    let work = lock.work();
    let own = options.calling_thread.clone().map(|start| CaptureRequest { start, ..CaptureRequest::default() });
    let signalled = signalled_threads::begin(own.as_ref(), context)?;
    list_and_signal(&signalled, work, own.is_some())?;
    wait(&signalled, options);
    Ok(write(&mut GatheredThreads { signalled: &signalled, work }))
}

fn list_and_signal(signalled: &SignalledThreads<'_>, work: &mut DumpMemory, with_own: bool) -> Result<(), DumpError> {
    let me = tasks::own();
    let signal_thread = |task| {
        if task != me || with_own {
            signalled.signal_thread(task);
        }
    };
    tasks::for_each(&mut work.scratch, signal_thread).map_err(DumpError::NoThreadList)
}

/// Waits for all threads; after a tenth of the time, no longer for those that block the signal.
fn wait(signalled: &SignalledThreads<'_>, options: &DumpOptions) {
    let now = Instant::now();
    if signalled.wait_until(now + options.timeout / 10) {
        return;
    }
    signalled.give_up(|task| TaskStatus::of(task, signalled.signal()).is_none_or(|status| status.is_blocked));
    signalled.wait_until(now + options.timeout);
    signalled.give_up(|_| true);
}

fn write_all(out: &mut FdWriter, gathered: &GatheredThreads<'_>, options: &DumpOptions) -> DumpSummary {
    let threads = gathered.threads().count();
    let answered = gathered.threads().filter(|thread| thread.reply.is_some()).count();
    // SAFETY: `getpid` has no preconditions.
    let process = unsafe { libc::getpid() };
    let _ = writeln!(out, "Stackweave: {threads} threads of process {process}, most recent call first");
    for thread in gathered.threads() {
        let _ = write_thread(out, &thread, &gathered.work.modules, options.frames);
    }
    let omitted = gathered.signalled.omitted();
    if omitted > 0 {
        let _ = writeln!(out, "\nand {omitted} more threads");
    }
    DumpSummary { threads: threads + omitted, answered }
}
