//! An inspection of a process: its threads are stopped, read, and let go.

use std::collections::HashMap;
use std::time::Duration;

use stackweave_core::StopReason;

use crate::Options;
use crate::memory::ProcessMemory;
use crate::modules::Modules;
use crate::process::{Process, Task};
use crate::ptrace;
use crate::python::{NoPython, PythonProcess, PythonThread};
use crate::refusal::CantRead;
use crate::stack_memory::StillMemory;
use crate::stop::{Seized, StoppedProcess};
use crate::walk::{NativeStack, Walk, registers_of};

/// What was read, without names.
#[derive(Debug)]
pub(crate) struct Inspection {
    pub(crate) threads: Vec<InspectedThread>,
    pub(crate) python: Result<String, NoPython>,
    pub(crate) stopped_for: Duration,
    pub(crate) modules: Modules,
}

/// What was read of a thread.
#[derive(Debug)]
pub(crate) struct InspectedThread {
    pub(crate) task: Task,
    pub(crate) native: NativeStack,
    pub(crate) python: Option<PythonThread>,
    /// Why nothing of it could be read.
    pub(crate) problem: Option<String>,
}

/// Inspects `process` from a thread of its own: the kernel lets go whatever a thread traces when that ends, by a panic too.
pub(crate) fn inspect(process: Process, options: &Options) -> Result<Inspection, CantRead> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("stackweave-look".to_owned());
        let failed = |said: &str| CantRead::System { process: process.number, said: said.to_owned() };
        let inspecting = builder.spawn_scoped(scope, || inspect_here(process, options));
        let inspecting = inspecting.map_err(|error| failed(&error.to_string()))?;
        inspecting.join().unwrap_or_else(|_| Err(failed("reading it failed")))
    })
}

fn inspect_here(process: Process, options: &Options) -> Result<Inspection, CantRead> {
    // What takes long is done before the process is stopped, and holds unless it loaded or unloaded a library meanwhile:
    // then it is done again while it stands still.
    if !ProcessMemory::of(process.number).may_be_read() {
        return Err(process.refusal(libc::EPERM));
    }
    let mut modules = Modules::of(process);
    let python = find_python(process, options);
    let stopped = StoppedProcess::stop(process, options.patience)?;
    let threads = inspect_all(process, &stopped, &modules, python.as_ref().ok(), options);
    let stopped_for = stopped.let_go();
    if !modules.look_again() {
        return Ok(Inspection { threads, python: version(python), stopped_for, modules });
    }
    let stopped = StoppedProcess::stop(process, options.patience)?;
    modules.look_again();
    let python = find_python(process, options);
    let threads = inspect_all(process, &stopped, &modules, python.as_ref().ok(), options);
    Ok(Inspection { threads, python: version(python), stopped_for: stopped_for + stopped.let_go(), modules })
}

fn version(python: Result<PythonProcess, NoPython>) -> Result<String, NoPython> {
    python.map(|python| python.version())
}

fn inspect_all(
    process: Process,
    stopped: &StoppedProcess,
    modules: &Modules,
    python: Option<&PythonProcess>,
    options: &Options,
) -> Vec<InspectedThread> {
    let mut python_threads = PythonThreads::new(python.map(PythonProcess::threads).unwrap_or_default());
    let mut memory = StillMemory::of(process.number);
    let mut walk = Walk { modules, memory: &mut memory };
    stopped.threads().map(|thread| inspect_thread(thread, &mut walk, &mut python_threads, options)).collect()
}

fn find_python(process: Process, options: &Options) -> Result<PythonProcess, NoPython> {
    if options.python { PythonProcess::find(process.number) } else { Err(NoPython(String::new())) }
}

fn inspect_thread(
    thread: &Seized,
    walk: &mut Walk<'_>,
    python: &mut PythonThreads,
    options: &Options,
) -> InspectedThread {
    let nothing = NativeStack { addresses: Vec::new(), stack_pointers: Vec::new(), stop: StopReason::EndOfStack };
    let mut seen = InspectedThread { task: thread.task.clone(), native: nothing, python: None, problem: None };
    if !thread.is_stopped() {
        seen.python = python.take(seen.task.number, None);
        seen.problem = Some(late(seen.task.state).to_owned());
        return seen;
    }
    match ptrace::registers(thread.task.number) {
        Ok(registers) => {
            seen.python = python.take(seen.task.number, Some(registers.fs_base));
            if options.native {
                seen.native = walk.walk(&registers_of(&registers));
            }
        }
        Err(error) => {
            seen.python = python.take(seen.task.number, None);
            seen.problem = Some(format!("no registers: {}", std::io::Error::from_raw_os_error(error)));
        }
    }
    seen
}

/// Why a thread has not stopped.
fn late(state: char) -> &'static str {
    match state {
        'D' => "it waits in the kernel, where nothing can stop it",
        _ => "it did not stop in time",
    }
}

/// What the interpreter knows, by the two numbers of a thread.
struct PythonThreads {
    by_task: HashMap<u32, PythonThread>,
    by_pthread: HashMap<u64, PythonThread>,
}

impl PythonThreads {
    fn new(threads: Vec<PythonThread>) -> Self {
        let mut sorted = Self { by_task: HashMap::new(), by_pthread: HashMap::new() };
        for thread in threads {
            match thread.task {
                Some(task) => sorted.by_task.insert(task, thread),
                None => sorted.by_pthread.insert(thread.pthread, thread),
            };
        }
        sorted
    }

    fn take(&mut self, task: u32, pthread: Option<u64>) -> Option<PythonThread> {
        self.by_task.remove(&task).or_else(|| self.by_pthread.remove(&pthread?))
    }
}
