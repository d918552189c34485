//! The Python frames of another process, read from outside.
//!
//! No code runs in that process, and none of its data is trusted: the kernel reads each word, and inconsistent
//! data ends the walk with a `problem`. The layouts are those of [`stackweave_cpython::layout`].

mod attributes;
mod chain;
mod codes;
mod elf;
mod frame_objects;
mod loops;
mod maps;
mod objects;
mod problem;
mod runtime;
mod snapshot;
mod states;
mod tasks;
mod thread_names;
mod threads;
mod version;

#[cfg(test)]
mod fake_process;
#[cfg(test)]
mod fake_threading;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod thread_names_tests;

use std::sync::Arc;

use stackweave_core::{Position, StackPointer};

use self::runtime::Runtime;
use self::snapshot::PageSnapshot;
use self::tasks::Tasks;
use crate::memory::RemoteMemory;

/// An interpreter in another process.
#[derive(Debug)]
pub struct PythonProcess {
    process: u32,
    memory: RemoteMemory,
    runtime: Runtime,
}

/// The reason why no Python frames can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPython(pub String);

/// A thread of the interpreter.
#[derive(Clone, Debug)]
pub struct PythonThread {
    /// Its `pthread_self()`: the base of its thread-local memory. 0 if only the problem is known.
    pub pthread: u64,
    /// Its id as this process sees it, if the interpreter knows it.
    pub task: Option<u32>,
    /// Its name in `threading`, such as `MainThread`.
    pub name: Option<Arc<str>>,
    /// Whether it holds the GIL.
    pub has_gil: bool,
    /// Its frames, innermost first, of all interpreters that it has entered.
    pub frames: Vec<RemotePythonFrame>,
    /// The reason why outer frames are missing.
    pub problem: Option<String>,
}

/// A Python frame of another process.
#[derive(Clone, Debug)]
pub struct RemotePythonFrame {
    /// The function.
    pub name: Arc<str>,
    /// The function with the classes and functions around it, from 3.11 on.
    pub qualname: Option<Arc<str>>,
    /// The file, as the interpreter received it.
    pub filename: Arc<str>,
    /// The line that the function begins on.
    pub first_line: Option<u32>,
    /// The position in the file.
    pub position: Position,
    /// An address on the C stack that belongs to the native frame which runs it; 0 if it is not known.
    pub activation: StackPointer,
}

impl PythonProcess {
    /// Finds the interpreter of a process, which need not be stopped.
    pub fn find(process: u32) -> Result<Self, NoPython> {
        let memory = RemoteMemory::of(process);
        let runtime = runtime::find(process, &memory).map_err(NoPython)?;
        Ok(Self { process, memory, runtime })
    }

    /// Returns the version as in `sys.version`: `3.12.1`.
    pub fn version(&self) -> String {
        self.runtime.version.to_string()
    }

    /// Returns its threads, of all interpreters. They should be stopped: data of running threads may be
    /// inconsistent, which leads to a problem, or may miss recent changes.
    pub fn threads(&self) -> Vec<PythonThread> {
        threads::read(&PageSnapshot::new(&self.memory), &self.runtime, &Tasks::of(self.process))
    }
}
