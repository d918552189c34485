//! One dump: the threads are listed, asked, waited for and written.
//!
//! No allocation, no lock, no interpreter's lock, async-signal-safe: only system calls, and what was mapped before.

use core::ffi::{c_int, c_void};
use core::fmt::Write;
use std::time::Instant;

use crate::dump::{CantDump, DumpOptions, Dumped};
use crate::platform::answers::{self, Asked};
use crate::platform::dump_lock::{DumpLock, Work};
use crate::platform::fd_writer::FdWriter;
use crate::platform::tasks::{self, Status};
use crate::platform::thread_text::{Thread, write_thread};
use crate::request::Request;

pub(crate) fn dump_all_threads(fd: c_int, options: &DumpOptions) -> Result<Dumped, CantDump> {
    written(fd, None, options)
}

/// # Safety
/// As for `capture_from_context`.
pub(crate) unsafe fn dump_all_threads_from_context(
    fd: c_int,
    context: *const c_void,
    options: &DumpOptions,
) -> Result<Dumped, CantDump> {
    written(fd, Some(context), options)
}

/// Writes the dump, or why there is none.
fn written(fd: c_int, context: Option<*const c_void>, options: &DumpOptions) -> Result<Dumped, CantDump> {
    let mut out = FdWriter::new(fd);
    let result = dump(&mut out, context, options);
    if let Err(reason) = result {
        let _ = writeln!(out, "Stackweave: no dump of the threads: {reason}");
    }
    out.flush();
    match out.error() {
        Some(error) if result.is_ok() => Err(CantDump::NotWritten(error)),
        _ => result,
    }
}

fn dump(out: &mut FdWriter, context: Option<*const c_void>, options: &DumpOptions) -> Result<Dumped, CantDump> {
    gather(context, options, |gathered| {
        gathered.work.modules.read(&mut gathered.work.scratch);
        write_all(out, gathered, options)
    })
}

/// The threads that were asked, and what they said.
#[derive(Debug)]
pub(crate) struct Gathered<'a> {
    pub(crate) asked: &'a Asked<'a>,
    pub(crate) work: &'a mut Work,
}

impl Gathered<'_> {
    /// Those that still are there.
    pub(crate) fn threads(&self) -> impl Iterator<Item = Thread> {
        let signal = self.asked.signal();
        self.asked.answers().filter_map(move |(task, answer)| {
            let status = if answer.is_none() { Some(Status::of(task, signal)?) } else { None };
            Some(Thread { task, answer, status, signal, is_own: task == tasks::own() })
        })
    }
}

/// Asks all threads, and gives their answers to `write`.
pub(crate) fn gather<T>(
    context: Option<*const c_void>,
    options: &DumpOptions,
    write: impl FnOnce(&mut Gathered<'_>) -> T,
) -> Result<T, CantDump> {
    let mut lock = DumpLock::try_lock().ok_or(CantDump::Busy)?;
    let work = lock.work();
    let own = options.calling_thread.clone().map(|start| Request { start, ..Request::default() });
    let asked = answers::begin(own.as_ref(), context)?;
    list_and_ask(&asked, work, own.is_some())?;
    wait(&asked, options);
    Ok(write(&mut Gathered { asked: &asked, work }))
}

fn list_and_ask(asked: &Asked<'_>, work: &mut Work, with_own: bool) -> Result<(), CantDump> {
    let me = tasks::own();
    let ask = |task| {
        if task != me || with_own {
            asked.ask(task);
        }
    };
    tasks::for_each(&mut work.scratch, ask).map_err(CantDump::NoThreadList)
}

/// Waits for all; after a tenth of the time no longer for those that block the signal.
fn wait(asked: &Asked<'_>, options: &DumpOptions) {
    let now = Instant::now();
    if asked.wait_until(now + options.timeout / 10) {
        return;
    }
    asked.give_up(|task| Status::of(task, asked.signal()).is_none_or(|status| status.is_blocked));
    asked.wait_until(now + options.timeout);
    asked.give_up(|_| true);
}

fn write_all(out: &mut FdWriter, gathered: &Gathered<'_>, options: &DumpOptions) -> Dumped {
    let threads = gathered.threads().count();
    let answered = gathered.threads().filter(|thread| thread.answer.is_some()).count();
    // SAFETY: has no conditions.
    let process = unsafe { libc::getpid() };
    let _ = writeln!(out, "Stackweave: {threads} threads of process {process}, most recent call first");
    for thread in gathered.threads() {
        let _ = write_thread(out, &thread, &gathered.work.modules, options.frames);
    }
    let left_out = gathered.asked.left_out();
    if left_out > 0 {
        let _ = writeln!(out, "\nand {left_out} more threads");
    }
    Dumped { threads: threads + left_out, answered }
}
