//! Reads the threads of another process as woven stacks of Python and native frames.
//!
//! Where ptrace is allowed, the process is stopped for some milliseconds and read from outside: nothing runs in
//! it, and nothing is written to it. Otherwise, a process that has loaded Stackweave can be queried, and reports
//! its stacks itself.

mod error;
mod image;
mod inspection;
mod maps;
mod memory;
mod modules;
mod named_stacks;
mod native_names;
mod options;
mod process;
mod ptrace;
mod python;
mod self_report;
mod stacks;
mod stop;
mod stopped_memory;
mod walk;

pub use error::{AccessRestriction, InspectionError};
pub use memory::RemoteMemory;
pub use options::InspectionOptions;
pub use python::{NoPython, PythonProcess, PythonThread, RemotePythonFrame};
pub use self_report::{ReportError, ReportedFrame, ReportedThread, SelfReport, request_report};
pub use stacks::{ProcessStacks, ThreadStack};

/// Returns the stacks of all threads of a process. `process` may also be the id of one of its threads. A process
/// that may not be traced is queried for its stacks.
pub fn stacks_of(process: u32, options: &InspectionOptions) -> Result<ProcessStacks, InspectionError> {
    let process = process::Process::find(process)?;
    match inspection::inspect(process, options) {
        Ok(inspection) => Ok(named_stacks::name_stacks(process, inspection, options)),
        Err(error @ (InspectionError::NotAllowed { .. } | InspectionError::Traced { .. })) => {
            self_report::stacks_of(process, options).map_err(|why| error.unreported(why))
        }
        Err(error) => Err(error),
    }
}
