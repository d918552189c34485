//! Where the threads of another process are, as woven stacks of Python and native frames.
//!
//! A process is stopped for some milliseconds and read from outside, where ptrace allows that; nothing runs in it. A process
//! that has Stackweave loaded can be asked as well, and writes down its stacks itself.

mod memory;
mod python;
mod stacks;

pub use memory::ProcessMemory;
pub use python::{NoPython, PythonFrame, PythonProcess, PythonThread};
pub use stacks::{ProcessStacks, ThreadStack};
