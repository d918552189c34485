//! An inspection of a process: stops its threads, reads them, and resumes them.

use std::collections::HashMap;
use std::time::Duration;

use stackweave_core::StopReason;

use crate::InspectionOptions;
use crate::error::InspectionError;
use crate::memory::RemoteMemory;
use crate::modules::Modules;
use crate::process::{Process, Task};
use crate::ptrace;
use crate::python::{NoPython, PythonProcess, PythonThread};
use crate::stop::{SeizedThread, StoppedProcess};
use crate::stopped_memory::StoppedMemory;
use crate::walk::{NativeWalk, RemoteNativeStack, registers_of};

/// The result of an inspection, without names.
#[derive(Debug)]
pub(crate) struct Inspection {
    pub(crate) threads: Vec<InspectedThread>,
    pub(crate) python: Result<String, NoPython>,
    pub(crate) stopped_for: Duration,
    pub(crate) modules: Modules,
}

/// The inspected state of a thread.
#[derive(Debug)]
pub(crate) struct InspectedThread {
    pub(crate) task: Task,
    pub(crate) native: RemoteNativeStack,
    pub(crate) python: Option<PythonThread>,
    /// The reason why the thread could not be read.
    pub(crate) problem: Option<String>,
}

/// Inspects `process` from a separate thread: the kernel detaches all tracees of a thread when it ends, even by a
/// panic.
pub(crate) fn inspect(process: Process, options: &InspectionOptions) -> Result<Inspection, InspectionError> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("stackweave-look".to_owned());
        let failed = |reason: &str| InspectionError::System { process: process.number, reason: reason.to_owned() };
        let inspecting = builder.spawn_scoped(scope, || inspect_here(process, options));
        let inspecting = inspecting.map_err(|error| failed(&error.to_string()))?;
        inspecting.join().unwrap_or_else(|_| Err(failed("reading it failed")))
    })
}

fn inspect_here(process: Process, options: &InspectionOptions) -> Result<Inspection, InspectionError> {
    // The slow part is done before the process is stopped. Its results are valid unless the process loaded or
    // unloaded a library meanwhile: then it is done again while the process is stopped.
    if !RemoteMemory::of(process.number).may_be_read() {
        return Err(process.trace_error(libc::EPERM));
    }
    let mut modules = Modules::of(process);
    let python = find_python(process, options);
    let stopped = StoppedProcess::stop(process, options.stop_timeout)?;
    let threads = inspect_all(process, &stopped, &modules, python.as_ref().ok(), options);
    let stopped_for = stopped.let_go();
    if !modules.refresh() {
        return Ok(Inspection { threads, python: version(python), stopped_for, modules });
    }
    let stopped = StoppedProcess::stop(process, options.stop_timeout)?;
    modules.refresh();
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
    options: &InspectionOptions,
) -> Vec<InspectedThread> {
    let mut python_threads = PythonThreads::new(python.map(PythonProcess::threads).unwrap_or_default());
    let mut memory = StoppedMemory::of(process.number);
    let mut walk = NativeWalk { modules, memory: &mut memory };
    stopped.threads().map(|thread| inspect_thread(thread, &mut walk, &mut python_threads, options)).collect()
}

fn find_python(process: Process, options: &InspectionOptions) -> Result<PythonProcess, NoPython> {
    if options.python { PythonProcess::find(process.number) } else { Err(NoPython(String::new())) }
}

fn inspect_thread(
    thread: &SeizedThread,
    walk: &mut NativeWalk<'_>,
    python: &mut PythonThreads,
    options: &InspectionOptions,
) -> InspectedThread {
    let nothing = RemoteNativeStack { addresses: Vec::new(), stack_pointers: Vec::new(), stop: StopReason::EndOfStack };
    let mut seen = InspectedThread { task: thread.task.clone(), native: nothing, python: None, problem: None };
    if !thread.is_stopped() {
        seen.python = python.take(seen.task.number, None);
        seen.problem = Some(unstopped_reason(seen.task.state).to_owned());
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

/// Returns why a thread has not stopped.
fn unstopped_reason(state: char) -> &'static str {
    match state {
        'D' => "it waits in the kernel, where nothing can stop it",
        _ => "it did not stop in time",
    }
}

/// The threads that the interpreter knows, by either id of a thread.
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
