//! The woven stacks of a process.

use std::time::Duration;

use stackweave_core::Module;
use stackweave_profile::Frame;

/// The stacks of all threads of a process.
#[derive(Clone, Debug)]
pub struct ProcessStacks {
    /// The process.
    pub process: u32,
    /// Its command line.
    pub command_line: Vec<String>,
    /// The version of its Python, if it has one that can be read.
    pub python: Option<String>,
    /// The time that its threads were stopped; `None` if they were queried instead.
    pub stopped_for: Option<Duration>,
    /// The main thread first, then by id.
    pub threads: Vec<ThreadStack>,
    /// Its loaded modules, by address.
    pub modules: Vec<Module>,
    /// Notes on the result, such as missing data and the reasons.
    pub remarks: Vec<String>,
}

/// The stack of a thread.
#[derive(Clone, Debug)]
pub struct ThreadStack {
    /// Its id.
    pub task: u32,
    /// Its name in Python's `threading`, otherwise its name in the kernel.
    pub name: String,
    /// Its name in the kernel; until Python 3.13, that is the name of the program.
    pub kernel_name: String,
    /// Its state in `/proc`: `R` runs, `S` sleeps, `D` waits for a device.
    pub state: char,
    /// Whether it holds the GIL, if that is known.
    pub has_gil: Option<bool>,
    /// Its frames, innermost first.
    pub frames: Vec<Frame>,
    /// The reason why frames are missing.
    pub problem: Option<String>,
}

/// The end of the path of the package's native module.
const NATIVE_MODULE: &str = "/_native.abi3.so";

impl ProcessStacks {
    /// Marks the frames of Stackweave's Python package, if the process has loaded its native module.
    pub(crate) fn mark_own_frames(&mut self) {
        let folder = |module: &Module| module.path.to_str()?.strip_suffix(NATIVE_MODULE).map(str::to_owned);
        let mut folders = self.modules.iter().filter_map(folder);
        let Some(package) = folders.find(|folder| folder.ends_with("/stackweave")) else { return };
        for frame in self.threads.iter_mut().flat_map(|thread| &mut thread.frames) {
            frame.is_own = frame.is_in(&package);
        }
    }

    /// Returns the module that contains the code of a native frame.
    pub fn module_of(&self, frame: &Frame) -> Option<&Module> {
        let address = frame.address?;
        let index = self.modules.partition_point(|module| module.start < address).checked_sub(1)?;
        // A return address may be the first address after its module.
        self.modules.get(index).filter(|module| address <= module.end)
    }
}
