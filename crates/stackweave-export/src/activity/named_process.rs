//! Processes and threads with unique ids for viewers, and with the names of their frames.

use std::collections::HashSet;

use stackweave_profile::{Frame, RecordedNames};
use stackweave_recording::ProcessRecording;

use crate::source::Source;

/// Linux gives no process or thread an id from here on.
const FIRST_FREE: u32 = 1 << 22;

/// A process, with names for all of its frames.
#[derive(Debug)]
pub(crate) struct NamedProcess<'a> {
    pub(crate) recording: &'a ProcessRecording,
    /// Its id in the system, or a greater number if another process of the export has the same id.
    pub(crate) pid: u32,
    pub(crate) title: String,
    /// The machine and the Python, which distinguish it from other processes.
    pub(crate) labels: String,
    /// The time at which it began to record.
    pub(crate) began: u64,
    /// Sorted by number.
    pub(crate) threads: Vec<NamedThread>,
    names: RecordedNames,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedThread {
    /// Its number in its process.
    pub(crate) number: u32,
    /// Its id in the system, or a greater number if the process had two threads with this id.
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// Whether it is a thread of the recorder.
    pub(crate) is_recorders: bool,
}

impl<'a> NamedProcess<'a> {
    /// Returns all processes of an export, in their order.
    pub(crate) fn all(source: &Source<'a>) -> Vec<Self> {
        let mut used = HashSet::new();
        let mut unique = UniqueIds { used: &mut used, next: FIRST_FREE };
        let named = |process: &'a ProcessRecording| {
            let frames: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
            Self {
                recording: process,
                pid: unique.id(process.start().pid),
                title: title(process),
                labels: labels(process),
                began: source.began(process),
                threads: threads(source, process),
                names: source.names(process, &frames),
            }
        };
        source.processes().iter().map(named).collect()
    }

    /// Returns the functions of a frame, outermost first: several if calls were inlined or generated.
    pub(crate) fn chain(&self, frame: u32) -> impl DoubleEndedIterator<Item = &Frame> {
        self.names.of(frame).iter().rev()
    }

    /// Returns the line of a frame, as `file:line`.
    pub(crate) fn line_of(&self, frame: u32) -> Option<String> {
        let frame = self.names.of(frame).first()?;
        let file = frame.filename.as_ref()?;
        let line = frame.position.line.or(frame.first_line).filter(|line| *line > 0);
        Some(line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}")))
    }

    pub(crate) fn thread(&self, number: u32) -> Option<&NamedThread> {
        let index = self.threads.binary_search_by_key(&number, |thread| thread.number).ok()?;
        self.threads.get(index)
    }
}

fn title(process: &ProcessRecording) -> String {
    let start = process.start();
    match start.command_line.as_slice() {
        [] if start.executable.is_empty() => format!("process {}", start.pid),
        [] => start.executable.clone(),
        words => words.join(" "),
    }
}

fn labels(process: &ProcessRecording) -> String {
    let start = process.start();
    let python = start.python.as_ref().map(|version| format!("Python {version}"));
    let labels = [Some(start.host.clone()).filter(|host| !host.is_empty()), python];
    labels.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn threads(source: &Source<'_>, process: &ProcessRecording) -> Vec<NamedThread> {
    let mut used = HashSet::new();
    let mut unique = UniqueIds { used: &mut used, next: FIRST_FREE };
    let wanted = process.dictionary().threads().filter(|thread| source.options().part.selects(Some(thread)));
    let named = wanted.map(|thread| NamedThread {
        number: thread.number,
        tid: unique.id(thread.tid),
        name: thread.name.clone(),
        is_recorders: thread.is_recorders(),
    });
    named.collect()
}

/// Makes the ids of processes or threads unique.
struct UniqueIds<'u> {
    used: &'u mut HashSet<u32>,
    /// All numbers from [`FIRST_FREE`] to this one are used. Each is tried once, however many ids are equal.
    next: u32,
}

impl UniqueIds<'_> {
    /// Returns the id itself if it is unused, else one that the system does not give.
    fn id(&mut self, id: u32) -> u32 {
        if self.used.insert(id) {
            return id;
        }
        let free = (self.next..u32::MAX).find(|other| self.used.insert(*other));
        self.next = free.unwrap_or(u32::MAX);
        free.unwrap_or(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ids_become_different() {
        let mut used = HashSet::new();
        let mut unique = UniqueIds { used: &mut used, next: FIRST_FREE };
        assert_eq!([7, 0, 7, 7, 8, 0].map(|id| unique.id(id)), [7, 0, FIRST_FREE, FIRST_FREE + 1, 8, FIRST_FREE + 2]);
    }
}
