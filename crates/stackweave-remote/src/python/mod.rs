//! The Python frames of another process, read from outside.

use std::sync::Arc;

use stackweave_core::{Position, StackPointer};

use crate::memory::ProcessMemory;

/// An interpreter in another process.
#[derive(Debug)]
pub struct PythonProcess {
    memory: ProcessMemory,
}

/// Why no Python frames can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPython(pub String);

/// A thread that the interpreter knows.
#[derive(Clone, Debug)]
pub struct PythonThread {
    /// What `pthread_self()` is there: the base of its thread-local memory.
    pub pthread: u64,
    /// The kernel's number, where the interpreter knows it.
    pub task: Option<u32>,
    /// Whether it holds the GIL.
    pub has_gil: bool,
    /// Innermost first.
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
    /// The interpreter of a process, which should be stopped.
    pub fn find(process: u32) -> Result<Self, NoPython> {
        let _ = Self { memory: ProcessMemory::of(process) }.memory;
        Err(NoPython("no Python was found there".to_owned()))
    }

    /// Its version.
    pub fn version(&self) -> String {
        String::new()
    }

    /// Its threads, of all interpreters.
    pub fn threads(&self) -> Vec<PythonThread> {
        Vec::new()
    }
}
