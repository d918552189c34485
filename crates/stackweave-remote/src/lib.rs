//! Where the threads of another process are, as woven stacks of Python and native frames.
//!
//! A process is stopped for some milliseconds and read from outside, where ptrace allows that; nothing runs in it, and
//! nothing is written to it. A process that has Stackweave loaded can be asked as well, and writes down its stacks itself.

mod asking;
mod image;
mod join;
mod look;
mod maps;
mod memory;
mod modules;
mod names;
mod options;
mod process;
mod ptrace;
mod python;
mod refusal;
mod stack_memory;
mod stacks;
mod stop;
mod walk;

pub use asking::{Answer, AnsweredFrame, AnsweredThread, NoAnswer, ask};
pub use memory::ProcessMemory;
pub use options::Options;
pub use python::{NoPython, PythonFrame, PythonProcess, PythonThread};
pub use refusal::{CantRead, Guard};
pub use stacks::{ProcessStacks, ThreadStack};

/// The stacks of all threads of a process, which may also be named by the number of one of its threads. One that may not be
/// traced is asked to say them itself.
pub fn stacks_of(process: u32, options: &Options) -> Result<ProcessStacks, CantRead> {
    let process = process::Process::find(process)?;
    match look::look(process, options) {
        Ok(look) => Ok(join::join(process, look, options)),
        Err(refusal @ (CantRead::NotAllowed { .. } | CantRead::Traced { .. })) => {
            asking::stacks_of(process, options).map_err(|why| refusal.unanswered(why))
        }
        Err(refusal) => Err(refusal),
    }
}
