//! What a process has said about its threads.

use std::collections::BTreeMap;

use stackweave_core::{CodeAddress, SourceLocation};

/// Where the threads of a process are, with native frames that are not named yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfReport {
    /// The process.
    pub process: u32,
    /// The main thread first, then by number.
    pub threads: Vec<ReportedThread>,
    /// How many threads it has beyond those that it has asked.
    pub more: usize,
}

/// Where a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedThread {
    /// The kernel's number of it.
    pub task: u32,
    /// As the kernel knows it.
    pub name: String,
    /// What it did just before it was asked, as `/proc` has it.
    pub state: char,
    /// Innermost first.
    pub frames: Vec<ReportedFrame>,
    /// Why frames are missing, if they are.
    pub problem: Option<String>,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportedFrame {
    /// A place in machine code of that process.
    Native(CodeAddress),
    /// A place in Python code; without columns.
    Python(SourceLocation),
    /// A frame of another interpreter, as it writes it.
    Script(String),
    /// A name that somebody gave to what happens.
    Label(String),
}

impl SelfReport {
    /// Adds what was seen from outside, and sorts the threads.
    pub(super) fn know(&mut self, process: u32, states: &BTreeMap<u32, char>) {
        for thread in &mut self.threads {
            thread.state = states.get(&thread.task).copied().unwrap_or(thread.state);
        }
        self.threads.sort_by_key(|thread| (thread.task != process, thread.task));
    }
}
