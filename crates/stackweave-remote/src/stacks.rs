//! The woven stacks of a process.

use std::time::Duration;

use stackweave_core::Module;
use stackweave_profile::Frame;

/// Where all threads of a process are.
#[derive(Clone, Debug)]
pub struct ProcessStacks {
    /// The process.
    pub process: u32,
    /// The words that it was started with.
    pub command_line: Vec<String>,
    /// The version of its Python, if it has one that can be read.
    pub python: Option<String>,
    /// How long its threads stood still; `None` if they were not stopped, but asked.
    pub stopped_for: Option<Duration>,
    /// The main thread first, then by number.
    pub threads: Vec<ThreadStack>,
    /// What is loaded there, by address.
    pub modules: Vec<Module>,
    /// What has to be known about it: what is missing, and why.
    pub remarks: Vec<String>,
}

/// Where a thread is.
#[derive(Clone, Debug)]
pub struct ThreadStack {
    /// The kernel's number of it.
    pub task: u32,
    /// The name that Python's `threading` gives it, or else the kernel's.
    pub name: String,
    /// As the kernel knows it: until Python 3.13, that is the name of the program.
    pub kernel_name: String,
    /// As `/proc` has it: `R` runs, `S` sleeps, `D` waits for a device.
    pub state: char,
    /// Whether it holds the GIL, where that is known.
    pub has_gil: Option<bool>,
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Why frames are missing, if they are.
    pub problem: Option<String>,
}

impl ProcessStacks {
    /// The module that holds the code of a native frame.
    pub fn module_of(&self, frame: &Frame) -> Option<&Module> {
        let address = frame.address?;
        let index = self.modules.partition_point(|module| module.start < address).checked_sub(1)?;
        // A return address may be the first one after its module.
        self.modules.get(index).filter(|module| address <= module.end)
    }
}
