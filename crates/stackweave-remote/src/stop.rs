//! All threads of a process, stopped together for an inspection.

use core::ffi::c_int;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::process::{Process, Task};
use crate::ptrace::{self, Arrival};
use crate::refusal::CantRead;

/// The threads of a process while they stand still. They go on when this is dropped; those that could not be let go
/// then (they had not stopped yet) go on when the thread that made this ends, which is why an inspection has a thread of its own.
#[derive(Debug)]
pub(crate) struct StoppedProcess {
    threads: BTreeMap<u32, Seized>,
    /// When the first was asked to stop.
    since: Option<Instant>,
}

/// A thread of it.
#[derive(Debug)]
pub(crate) struct Seized {
    pub(crate) task: Task,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Asked,
    Stopped(c_int),
    Gone,
}

impl Seized {
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.progress, Progress::Stopped(_))
    }
}

impl StoppedProcess {
    /// Stops all threads of `process`, as long as that does not take longer than `patience` for one of them: what does
    /// not stop in time is left where it is.
    pub(crate) fn stop(process: Process, patience: Duration) -> Result<Self, CantRead> {
        let mut stopped = Self { threads: BTreeMap::new(), since: None };
        // A thread that runs may start others until it is stopped: look again until there is none that is new.
        while stopped.seize_new(process)? {
            stopped.wait(process, patience);
        }
        stopped.threads.retain(|_, thread| thread.progress != Progress::Gone);
        if stopped.threads.is_empty() { Err(CantRead::NoProcess(process.number)) } else { Ok(stopped) }
    }

    /// The threads, the process's first one first, then by number.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &Seized> {
        self.threads.values()
    }

    /// Lets all go, and says how long they stood still.
    pub(crate) fn let_go(mut self) -> Duration {
        self.release();
        self.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Asks every thread to stop that was not asked yet; says whether there was one.
    fn seize_new(&mut self, process: Process) -> Result<bool, CantRead> {
        let is_new = |number: &u32| !self.threads.contains_key(number);
        // Their states are what they were before they are disturbed.
        let new: Vec<Task> =
            process.tasks().into_iter().filter(is_new).filter_map(|number| process.task(number)).collect();
        let mut asked = Vec::with_capacity(new.len());
        for task in new {
            let progress = match ptrace::seize(task.number) {
                Ok(()) => Progress::Asked,
                Err(libc::ESRCH) => Progress::Gone,
                // A thread that has ended, but not its process, can't be seized either.
                Err(libc::EPERM) if process.task(task.number).is_none_or(|task| matches!(task.state, 'Z' | 'X')) => {
                    Progress::Gone
                }
                Err(error) => return Err(process.refusal(error)),
            };
            if progress == Progress::Asked {
                asked.push(task.number);
            }
            self.threads.insert(task.number, Seized { task, progress });
        }
        self.since.get_or_insert_with(Instant::now);
        for number in &asked {
            // One that has ended since is found by waiting for it.
            let _ = ptrace::interrupt(*number);
        }
        Ok(!asked.is_empty())
    }

    /// Waits until the threads that were asked have stopped.
    fn wait(&mut self, process: Process, patience: Duration) {
        let end = Instant::now() + patience;
        let mut pause = Duration::from_micros(10);
        loop {
            let mut waiting = self.threads.values_mut().filter(|thread| thread.progress == Progress::Asked).peekable();
            if waiting.peek().is_none() {
                return;
            }
            for thread in waiting {
                thread.progress = match ptrace::arrival(thread.task.number) {
                    Arrival::NotYet => Progress::Asked,
                    Arrival::Stopped(signal) => Progress::Stopped(signal),
                    Arrival::Gone => Progress::Gone,
                };
            }
            if self.threads.values().all(|thread| thread.progress != Progress::Asked) {
                return;
            }
            if Instant::now() >= end {
                return self.note_late(process);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    /// What those wait for that have not stopped.
    fn note_late(&mut self, process: Process) {
        for thread in self.threads.values_mut().filter(|thread| thread.progress == Progress::Asked) {
            match process.task(thread.task.number) {
                Some(task) => thread.task.state = task.state,
                None => thread.progress = Progress::Gone,
            }
        }
    }

    fn release(&mut self) {
        for (number, thread) in &mut self.threads {
            // One that was asked may have stopped meanwhile.
            if thread.progress == Progress::Asked
                && let Arrival::Stopped(signal) = ptrace::arrival(*number)
            {
                thread.progress = Progress::Stopped(signal);
            }
            if let Progress::Stopped(signal) = thread.progress {
                let _ = ptrace::let_go(*number, signal);
                thread.progress = Progress::Gone;
            }
        }
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        self.release();
    }
}
