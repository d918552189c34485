//! Stops all threads of a process for an inspection.

use core::ffi::c_int;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::error::InspectionError;
use crate::process::{Process, Task};
use crate::ptrace::{self, StopStatus};

/// The stopped threads of a process. They resume when this is dropped. Threads that cannot be resumed then,
/// because they have not stopped yet, resume when the thread that created this ends: that is why an inspection
/// uses a separate thread.
#[derive(Debug)]
pub(crate) struct StoppedProcess {
    threads: BTreeMap<u32, SeizedThread>,
    /// The time at which the first thread was interrupted.
    since: Option<Instant>,
}

/// A traced thread.
#[derive(Debug)]
pub(crate) struct SeizedThread {
    pub(crate) task: Task,
    progress: StopProgress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopProgress {
    Interrupted,
    Stopped(c_int),
    Gone,
}

impl SeizedThread {
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.progress, StopProgress::Stopped(_))
    }
}

impl StoppedProcess {
    /// Stops all threads of `process`, waiting at most `stop_timeout` for each: threads that do not stop in time are
    /// skipped.
    pub(crate) fn stop(process: Process, stop_timeout: Duration) -> Result<Self, InspectionError> {
        let mut stopped = Self { threads: BTreeMap::new(), since: None };
        // A running thread may start others until it is stopped: repeat until there are no new ones.
        while stopped.seize_new(process)? {
            stopped.wait(process, stop_timeout);
        }
        stopped.threads.retain(|_, thread| thread.progress != StopProgress::Gone);
        if stopped.threads.is_empty() { Err(InspectionError::NoProcess(process.number)) } else { Ok(stopped) }
    }

    /// Returns the threads: the main thread first, then by id.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &SeizedThread> {
        self.threads.values()
    }

    /// Resumes all threads, and returns how long they were stopped.
    pub(crate) fn let_go(mut self) -> Duration {
        self.release();
        self.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Interrupts every new thread. Returns whether there was one.
    fn seize_new(&mut self, process: Process) -> Result<bool, InspectionError> {
        let is_new = |number: &u32| !self.threads.contains_key(number);
        // Read their states before they are interrupted.
        let new: Vec<Task> =
            process.tasks().into_iter().filter(is_new).filter_map(|number| process.task(number)).collect();
        let mut interrupted = Vec::with_capacity(new.len());
        for task in new {
            let progress = match ptrace::seize(task.number) {
                Ok(()) => StopProgress::Interrupted,
                Err(libc::ESRCH) => StopProgress::Gone,
                // A thread that has ended, while its process has not, cannot be seized either.
                Err(libc::EPERM) if process.task(task.number).is_none_or(|task| matches!(task.state, 'Z' | 'X')) => {
                    StopProgress::Gone
                }
                Err(error) => return Err(process.trace_error(error)),
            };
            if progress == StopProgress::Interrupted {
                interrupted.push(task.number);
            }
            self.threads.insert(task.number, SeizedThread { task, progress });
        }
        self.since.get_or_insert_with(Instant::now);
        for number in &interrupted {
            // Waiting detects a thread that has ended since.
            let _ = ptrace::interrupt(*number);
        }
        Ok(!interrupted.is_empty())
    }

    /// Waits until the interrupted threads have stopped.
    fn wait(&mut self, process: Process, stop_timeout: Duration) {
        let end = Instant::now() + stop_timeout;
        let mut pause = Duration::from_micros(10);
        loop {
            let mut waiting =
                self.threads.values_mut().filter(|thread| thread.progress == StopProgress::Interrupted).peekable();
            if waiting.peek().is_none() {
                return;
            }
            for thread in waiting {
                thread.progress = match ptrace::stop_status(thread.task.number) {
                    StopStatus::Running => StopProgress::Interrupted,
                    StopStatus::Stopped(signal) => StopProgress::Stopped(signal),
                    StopStatus::Gone => StopProgress::Gone,
                };
            }
            if self.threads.values().all(|thread| thread.progress != StopProgress::Interrupted) {
                return;
            }
            if Instant::now() >= end {
                return self.update_unstopped(process);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    /// Updates the states of threads that have not stopped.
    fn update_unstopped(&mut self, process: Process) {
        for thread in self.threads.values_mut().filter(|thread| thread.progress == StopProgress::Interrupted) {
            match process.task(thread.task.number) {
                Some(task) => thread.task.state = task.state,
                None => thread.progress = StopProgress::Gone,
            }
        }
    }

    fn release(&mut self) {
        for (number, thread) in &mut self.threads {
            // An interrupted thread may have stopped meanwhile.
            if thread.progress == StopProgress::Interrupted
                && let StopStatus::Stopped(signal) = ptrace::stop_status(*number)
            {
                thread.progress = StopProgress::Stopped(signal);
            }
            if let StopProgress::Stopped(signal) = thread.progress {
                let _ = ptrace::let_go(*number, signal);
                thread.progress = StopProgress::Gone;
            }
        }
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        self.release();
    }
}
