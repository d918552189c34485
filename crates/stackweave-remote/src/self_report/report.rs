//! The stacks that a process has reported.

use std::collections::BTreeMap;

use stackweave_core::{CodeAddress, SourceLocation};

/// The threads of a process, with native frames that are not named yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfReport {
    /// The process.
    pub process: u32,
    /// The main thread first, then by id.
    pub threads: Vec<ReportedThread>,
    /// Number of threads beyond those that were signalled.
    pub more: usize,
}

/// A thread and its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedThread {
    /// Its id.
    pub task: u32,
    /// Its name in the kernel.
    pub name: String,
    /// Its state in `/proc` just before the query.
    pub state: char,
    /// Its frames, innermost first.
    pub frames: Vec<ReportedFrame>,
    /// The reason why frames are missing.
    pub problem: Option<String>,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportedFrame {
    /// A location in machine code of that process.
    Native(CodeAddress),
    /// A location in Python code, without columns.
    Python(SourceLocation),
    /// A frame of another interpreter, as text.
    Script(String),
    /// A name that the user gave to a part of the program.
    Label(String),
}

impl SelfReport {
    /// Adds the states that were read from outside, and sorts the threads.
    pub(super) fn add_states(&mut self, process: u32, states: &BTreeMap<u32, char>) {
        for thread in &mut self.threads {
            thread.state = states.get(&thread.task).copied().unwrap_or(thread.state);
        }
        self.threads.sort_by_key(|thread| (thread.task != process, thread.task));
    }
}
