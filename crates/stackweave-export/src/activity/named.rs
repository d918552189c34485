//! Processes and threads as viewers know them, with the names of their frames.

use std::collections::HashSet;

use stackweave_profile::{Frame, RecordedNames};
use stackweave_recording::ProcessRecording;

use crate::source::Source;

/// Numbers that no process or thread of Linux has begin here.
const FIRST_FREE: u32 = 1 << 22;

/// A process, with names for all of its frames.
#[derive(Debug)]
pub(crate) struct NamedProcess<'a> {
    pub(crate) recording: &'a ProcessRecording,
    /// Its number in the system, or one above all of those if another process of the export has that.
    pub(crate) pid: u32,
    pub(crate) title: String,
    /// What else tells it from others: machine, Python.
    pub(crate) labels: String,
    /// When it began to record.
    pub(crate) began: u64,
    /// In the order of their numbers.
    pub(crate) threads: Vec<NamedThread>,
    names: RecordedNames,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedThread {
    /// Its number in its process.
    pub(crate) number: u32,
    /// Its number in the system, or one above all of those if the process had two threads of that number.
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// Whether it is the recorder's own.
    pub(crate) is_recorders: bool,
}

impl<'a> NamedProcess<'a> {
    /// All processes of an export, in their order.
    pub(crate) fn all(source: &Source<'a>) -> Vec<Self> {
        let mut taken = HashSet::new();
        let mut unique = Unique { taken: &mut taken, next: FIRST_FREE };
        let numbers = |process: &'a ProcessRecording| {
            let frames: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
            Self {
                recording: process,
                pid: unique.number(process.start().pid),
                title: title(process),
                labels: labels(process),
                began: source.began(process),
                threads: threads(source, process),
                names: source.names(process, &frames),
            }
        };
        source.processes().iter().map(numbers).collect()
    }

    /// What a frame stands for, outermost first: more than one where calls were inlined or generated.
    pub(crate) fn chain(&self, frame: u32) -> impl DoubleEndedIterator<Item = &Frame> {
        self.names.of(frame).iter().rev()
    }

    /// The line that a frame is at, as `file:line`.
    pub(crate) fn line_of(&self, frame: u32) -> Option<String> {
        let frame = self.names.of(frame).first()?;
        let file = frame.filename.as_ref()?;
        let line = frame.position.line.or(frame.first_line).filter(|line| *line > 0);
        Some(line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}")))
    }

    pub(crate) fn thread(&self, number: u32) -> Option<&NamedThread> {
        let place = self.threads.binary_search_by_key(&number, |thread| thread.number).ok()?;
        self.threads.get(place)
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
    let mut taken = HashSet::new();
    let mut unique = Unique { taken: &mut taken, next: FIRST_FREE };
    let wanted = process.dictionary().threads().filter(|thread| source.options().part.selects(Some(thread)));
    let named = wanted.map(|thread| NamedThread {
        number: thread.number,
        tid: unique.number(thread.tid),
        name: thread.name.clone(),
        is_recorders: thread.is_recorders(),
    });
    named.collect()
}

struct Unique<'t> {
    taken: &'t mut HashSet<u32>,
    /// All numbers from [`FIRST_FREE`] to this one are taken: each is tried once, however many things have one number.
    next: u32,
}

impl Unique<'_> {
    /// The number itself if it is free, else one that the system does not give.
    fn number(&mut self, number: u32) -> u32 {
        if self.taken.insert(number) {
            return number;
        }
        let free = (self.next..u32::MAX).find(|other| self.taken.insert(*other));
        self.next = free.unwrap_or(u32::MAX);
        free.unwrap_or(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_have_one_number() {
        let mut taken = HashSet::new();
        let mut unique = Unique { taken: &mut taken, next: FIRST_FREE };
        assert_eq!(
            [7, 0, 7, 7, 8, 0].map(|number| unique.number(number)),
            [7, 0, FIRST_FREE, FIRST_FREE + 1, 8, FIRST_FREE + 2]
        );
    }
}
