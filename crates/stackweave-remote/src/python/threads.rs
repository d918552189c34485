//! All threads of a process, with their frames.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_core::StackPointer;

use super::chain::RemoteFrameReader;
use super::codes::Codes;
use super::objects::Objects;
use super::runtime::Runtime;
use super::snapshot::PageSnapshot;
use super::states::{PyThreadState, ThreadStates};
use super::tasks::Tasks;
use super::thread_names::ThreadNames;
use super::{PythonThread, RemotePythonFrame};

/// The maximum number of frames of all threads together.
const MAX_FRAMES: usize = 1 << 21;

pub(super) fn read(snapshot: &PageSnapshot<'_>, runtime: &Runtime, tasks: &Tasks) -> Vec<PythonThread> {
    let objects = Objects::new(snapshot, runtime.layout);
    let codes = Codes::new(&objects);
    let reader =
        RemoteFrameReader { snapshot, layout: runtime.layout, codes: &codes, has_greenlets: runtime.has_greenlets };
    let found = ThreadStates::read(snapshot, runtime);
    let mut threads: Vec<PythonThread> = Vec::new();
    let mut by_pthread: HashMap<u64, usize> = HashMap::new();
    let mut remaining = MAX_FRAMES;
    for state in &found.states {
        let thread = read_one(&reader, *state, tasks, &mut remaining);
        if state.pthread == 0 && thread.frames.is_empty() {
            // A state that no thread has begun to use.
            continue;
        }
        let same = by_pthread.get(&state.pthread).and_then(|index| threads.get_mut(*index));
        if let Some(same) = same.filter(|_| state.pthread != 0) {
            join(same, thread);
        } else {
            by_pthread.insert(state.pthread, threads.len());
            threads.push(thread);
        }
    }
    name_threads(&mut threads, &by_pthread, &found, ThreadNames::new(&objects, runtime.lists.modules));
    threads.extend(found.problem.map(|problem| PythonThread {
        pthread: 0,
        task: None,
        name: None,
        has_gil: false,
        frames: Vec::new(),
        problem: Some(problem.to_string()),
    }));
    threads
}

fn read_one(
    reader: &RemoteFrameReader<'_>,
    state: PyThreadState,
    tasks: &Tasks,
    remaining: &mut usize,
) -> PythonThread {
    let PyThreadState { address, pthread, task, has_gil, .. } = state;
    let walked = reader.walk(address, *remaining);
    *remaining -= walked.frames.len();
    PythonThread {
        pthread,
        task: tasks.number_of(task),
        name: None,
        has_gil,
        frames: walked.frames,
        problem: walked.problem.map(|problem| problem.to_string()),
    }
}

/// Sets the names after all frames are read: those are more important if the limit of work is reached.
fn name_threads(
    threads: &mut [PythonThread],
    by_pthread: &HashMap<u64, usize>,
    found: &ThreadStates,
    mut names: ThreadNames<'_>,
) {
    let mut give = |pthread: u64, name: Option<Arc<str>>| {
        let place = by_pthread.get(&pthread).and_then(|index| threads.get_mut(*index));
        if let (Some(thread), Some(name)) = (place.filter(|_| pthread != 0), name) {
            thread.name = Some(name);
        }
    };
    // The older interpreters come last, and override the names.
    for state in &found.states {
        give(state.pthread, names.of(state.interpreter, state.pthread));
    }
    if let (Some(first), None) = (found.states.last(), found.problem) {
        give(first.pthread, names.of_main(first.interpreter));
    }
}

/// Joins the frames of a thread that has entered another interpreter, and so has a state in each. The newer
/// interpreters come first, and are the inner ones unless the activations show otherwise.
fn join(thread: &mut PythonThread, other: PythonThread) {
    thread.task = thread.task.or(other.task);
    thread.has_gil |= other.has_gil;
    thread.problem = thread.problem.take().or(other.problem);
    thread.frames.extend(other.frames);
    let is_known = |frame: &RemotePythonFrame| frame.activation != StackPointer(0);
    if thread.frames.iter().all(is_known) {
        thread.frames.sort_by_key(|frame| frame.activation);
    }
}
