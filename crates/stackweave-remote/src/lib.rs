//! Where the threads of another process are, as woven stacks of Python and native frames.
//!
//! A process is stopped for some milliseconds and read from outside, where ptrace allows that; nothing runs in it, and
//! nothing is written to it. A process that has Stackweave loaded can be asked as well, and writes down its stacks itself.

mod image;
mod inspection;
mod join;
mod maps;
mod memory;
mod modules;
mod names;
mod options;
mod process;
mod ptrace;
mod python;
mod refusal;
mod self_report;
mod stack_memory;
mod stacks;
mod stop;
mod walk;

pub use memory::ProcessMemory;
pub use options::Options;
pub use python::{NoPython, PythonFrame, PythonProcess, PythonThread};
pub use refusal::{CantRead, Guard};
pub use self_report::{NoReport, ReportedFrame, ReportedThread, SelfReport, request_report};
pub use stacks::{ProcessStacks, ThreadStack};

/// The stacks of all threads of a process, which may also be named by the number of one of its threads. One that may not be
/// traced is asked to say them itself.
pub fn stacks_of(process: u32, options: &Options) -> Result<ProcessStacks, CantRead> {
    let process = process::Process::find(process)?;
    match inspection::inspect(process, options) {
        Ok(inspection) => Ok(join::join(process, inspection, options)),
        Err(refusal @ (CantRead::NotAllowed { .. } | CantRead::Traced { .. })) => {
            self_report::stacks_of(process, options).map_err(|why| refusal.unreported(why))
        }
        Err(refusal) => Err(refusal),
    }
}
