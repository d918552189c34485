//! The woven stacks of a process.

use stackweave_profile::Frame;

/// Where all threads of a process are.
#[derive(Clone, Debug)]
pub struct ProcessStacks {
    /// The process.
    pub process: u32,
    /// The main thread first, then by number.
    pub threads: Vec<ThreadStack>,
    /// What has to be known about it: what is missing, and why.
    pub remarks: Vec<String>,
}

/// Where a thread is.
#[derive(Clone, Debug)]
pub struct ThreadStack {
    /// The kernel's number of it.
    pub task: u32,
    /// As the kernel knows it.
    pub name: String,
    /// As `/proc` has it: `R` runs, `S` sleeps, `D` waits for a device.
    pub state: char,
    /// Whether it holds the GIL, where that is known.
    pub has_gil: Option<bool>,
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Why frames are missing, if they are.
    pub problem: Option<String>,
}
