//! The Python frames of another process, read from outside.
//!
//! Nothing runs in that process and nothing of it is trusted: each word is read by the kernel, and what does not fit
//! together ends the walk with a `problem`. The layouts are those of [`stackweave_cpython::layout`].

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
use self::snapshot::Snapshot;
use self::tasks::Tasks;
use crate::memory::ProcessMemory;

/// An interpreter in another process.
#[derive(Debug)]
pub struct PythonProcess {
    process: u32,
    memory: ProcessMemory,
    runtime: Runtime,
}

/// Why no Python frames can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPython(pub String);

/// A thread that the interpreter knows.
#[derive(Clone, Debug)]
pub struct PythonThread {
    /// What `pthread_self()` is there: the base of its thread-local memory. 0 where only the problem is known.
    pub pthread: u64,
    /// The kernel's number, where the interpreter knows it, as this process sees it.
    pub task: Option<u32>,
    /// The name that `threading` gives it: `MainThread`.
    pub name: Option<Arc<str>>,
    /// Whether it holds the GIL.
    pub has_gil: bool,
    /// Innermost first. Those of all interpreters that the thread is in.
    pub frames: Vec<PythonFrame>,
    /// Why outer frames are missing, if they are.
    pub problem: Option<String>,
}

/// A Python frame of another process.
#[derive(Clone, Debug)]
pub struct PythonFrame {
    /// The function.
    pub name: Arc<str>,
    /// The function with the classes and functions around it, from 3.11 on.
    pub qualname: Option<Arc<str>>,
    /// As the interpreter was given it.
    pub filename: Arc<str>,
    /// The line that the function begins on.
    pub first_line: Option<u32>,
    /// The place in the file.
    pub position: Position,
    /// An address on the C stack that belongs to the native frame which runs it; 0 where that is not known.
    pub activation: StackPointer,
}

impl PythonProcess {
    /// The interpreter of a process, which need not be stopped.
    pub fn find(process: u32) -> Result<Self, NoPython> {
        let memory = ProcessMemory::of(process);
        let runtime = runtime::find(process, &memory).map_err(NoPython)?;
        Ok(Self { process, memory, runtime })
    }

    /// As `sys.version` begins: `3.12.1`.
    pub fn version(&self) -> String {
        self.runtime.version.to_string()
    }

    /// Its threads, of all interpreters, which should be stopped: what is read of threads that run may not fit together,
    /// and then ends in a problem, or may miss what has just changed.
    pub fn threads(&self) -> Vec<PythonThread> {
        threads::read(&Snapshot::new(&self.memory), &self.runtime, &Tasks::of(self.process))
    }
}
