//! All threads of a process, with their frames.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_core::StackPointer;

use super::chain::Reader;
use super::codes::Codes;
use super::objects::Objects;
use super::runtime::Runtime;
use super::snapshot::Snapshot;
use super::states::{State, States};
use super::tasks::Tasks;
use super::thread_names::ThreadNames;
use super::{PythonFrame, PythonThread};

/// Frames of all threads together.
const MOST_FRAMES: usize = 1 << 21;

pub(super) fn read(snapshot: &Snapshot<'_>, runtime: &Runtime, tasks: &Tasks) -> Vec<PythonThread> {
    let objects = Objects::new(snapshot, runtime.layout);
    let codes = Codes::new(&objects);
    let reader = Reader { snapshot, layout: runtime.layout, codes: &codes, has_greenlets: runtime.has_greenlets };
    let found = States::read(snapshot, runtime);
    let mut threads: Vec<PythonThread> = Vec::new();
    let mut by_pthread: HashMap<u64, usize> = HashMap::new();
    let mut room = MOST_FRAMES;
    for state in &found.states {
        let thread = read_one(&reader, *state, tasks, &mut room);
        if state.pthread == 0 && thread.frames.is_empty() {
            // No thread has begun to use it.
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

fn read_one(reader: &Reader<'_>, state: State, tasks: &Tasks, room: &mut usize) -> PythonThread {
    let State { address, pthread, task, has_gil, .. } = state;
    let walked = reader.walk(address, *room);
    *room -= walked.frames.len();
    PythonThread {
        pthread,
        task: tasks.number_of(task),
        name: None,
        has_gil,
        frames: walked.frames,
        problem: walked.problem.map(|problem| problem.to_string()),
    }
}

/// After all frames are read: those are worth more, if what may be read does not suffice.
fn name_threads(
    threads: &mut [PythonThread],
    by_pthread: &HashMap<u64, usize>,
    found: &States,
    mut names: ThreadNames<'_>,
) {
    let mut give = |pthread: u64, name: Option<Arc<str>>| {
        let place = by_pthread.get(&pthread).and_then(|index| threads.get_mut(*index));
        if let (Some(thread), Some(name)) = (place.filter(|_| pthread != 0), name) {
            thread.name = Some(name);
        }
    };
    // The older interpreters come last, and have the last word.
    for state in &found.states {
        give(state.pthread, names.of(state.interpreter, state.pthread));
    }
    if let (Some(first), None) = (found.states.last(), found.problem) {
        give(first.pthread, names.of_main(first.interpreter));
    }
}

/// A thread that has gone from one interpreter into another has a state in each. The newer interpreters come first, and
/// are the inner ones if the stack does not say it better.
fn join(thread: &mut PythonThread, other: PythonThread) {
    thread.task = thread.task.or(other.task);
    thread.has_gil |= other.has_gil;
    thread.problem = thread.problem.take().or(other.problem);
    thread.frames.extend(other.frames);
    let is_known = |frame: &PythonFrame| frame.activation != StackPointer(0);
    if thread.frames.iter().all(is_known) {
        thread.frames.sort_by_key(|frame| frame.activation);
    }
}
