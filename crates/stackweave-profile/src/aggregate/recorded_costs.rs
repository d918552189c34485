//! What stacks of recorded frames cost, before they have names: for what tells addresses apart.

use std::collections::HashSet;

use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::collector::{Collected, GroupCosts, Wanted};
use crate::aggregate::measure::{Counted, Measure};
use crate::aggregate::memory_costs::default_device;
use crate::aggregate::options::AggregateOptions;
use crate::aggregate::recordings::collect_all;
use crate::aggregate::stack_costs::Place;
use crate::word_hash::WordSet;

/// What the events of processes cost, by the numbers of frames in their recordings.
#[derive(Debug)]
pub struct RecordedCosts<'a> {
    processes: &'a [ProcessRecording],
    collected: Vec<Collected>,
    device: i64,
}

/// A stack that cost something, or the stack of callers of one. Its frames are read one by one, since the stacks of deep
/// recursions have most of their frames in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordedStack {
    process: usize,
    /// Whose spans it is made of; 0 if it was recorded as a stack, which the groups of a process share.
    group: usize,
    place: Place,
}

/// What one stack cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedCost {
    /// The place of the process among those that were asked for.
    pub process: usize,
    /// The number of the thread in its process, if threads have groups of their own.
    pub thread: Option<u32>,
    /// The stack.
    pub stack: RecordedStack,
    /// As in [`Cost`](crate::Cost).
    pub calls: u64,
    /// As in [`Cost`](crate::Cost).
    pub own: i64,
}

impl<'a> RecordedCosts<'a> {
    /// Reads the events of processes. All measures are counted if none is asked for, but what is still alive: that needs
    /// another order of reading.
    pub fn collect(
        processes: &'a [ProcessRecording],
        options: &AggregateOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, ReadError> {
        let collected = collect_all(processes, options, Wanted::Asked, progress)?;
        let device = options.device.unwrap_or_else(|| default_device(&collected));
        Ok(Self { processes, collected, device })
    }

    /// The measures that there is anything of.
    pub fn measures(&self) -> Vec<Measure> {
        let counted = |measure: Measure| Counted { measure, device: self.device };
        let has = |measure: &Measure| self.groups().any(|(_, group)| group.has(counted(*measure)));
        Measure::ALL.into_iter().filter(has).collect()
    }

    /// The numbers of the frames of all stacks that cost something, by process, each once.
    pub fn frames(&self, measures: &[Measure]) -> Vec<Vec<u32>> {
        let mut frames = vec![DistinctFrames::default(); self.processes.len()];
        for measure in measures {
            self.visit(*measure, |cost| frames[cost.process].add(cost.stack, |stack| self.innermost(stack)));
        }
        frames.into_iter().map(|of_process| of_process.frames).collect()
    }

    /// What could not be read, for each process.
    pub fn missing(&self) -> impl Iterator<Item = &Missing> {
        self.collected.iter().map(|process| &process.missing)
    }

    /// Every stack that cost something.
    pub fn visit(&self, measure: Measure, mut cost: impl FnMut(RecordedCost)) {
        for (process, of) in self.collected.iter().enumerate() {
            for (number, group) in of.groups.iter().enumerate() {
                group.visit(Counted { measure, device: self.device }, &mut |place, calls, own| {
                    let group_number = if matches!(place, Place::Span(_)) { number } else { 0 };
                    let stack = RecordedStack { process, group: group_number, place };
                    cost(RecordedCost { process, thread: group.thread, stack, calls, own });
                });
            }
        }
    }

    /// Returns the number of a stack's innermost frame in the recording of its process, and the stack of its callers; `None`
    /// if the stack has no frames.
    pub fn innermost(&self, stack: RecordedStack) -> Option<(u32, RecordedStack)> {
        let (frame, callers) = match stack.place {
            Place::Stack(number) => {
                let (callers, frame) = self.processes[stack.process].dictionary().stack(number)?;
                (frame, Place::Stack(callers))
            }
            Place::Span(0) => return None,
            Place::Span(number) => {
                let spans = &self.collected[stack.process].groups[stack.group].spans;
                let node = spans.nodes().get(number as usize)?;
                (node.frame, Place::Span(node.parent))
            }
        };
        Some((frame, RecordedStack { place: callers, ..stack }))
    }

    /// Returns the numbers of a stack's frames in the recording of its process, innermost first.
    pub fn frames_of(&self, stack: RecordedStack) -> impl Iterator<Item = u32> {
        let mut next = stack;
        core::iter::from_fn(move || {
            let (frame, callers) = self.innermost(next)?;
            next = callers;
            Some(frame)
        })
    }

    fn groups(&self) -> impl Iterator<Item = (usize, &GroupCosts)> {
        self.collected.iter().enumerate().flat_map(|(process, of)| of.groups.iter().map(move |group| (process, group)))
    }
}

impl GroupCosts {
    pub(crate) fn has(&self, counted: Counted) -> bool {
        self.costs(counted).map_or(self.has_spans, |costs| !costs.is_empty())
    }

    fn visit(&self, counted: Counted, cost: &mut dyn FnMut(Place, u64, i64)) {
        if let Some(costs) = self.costs(counted) {
            for (place, of) in costs {
                cost(place, of.events, of.value(counted.measure));
            }
            return;
        }
        for ((node, number), own) in self.spans.nodes().iter().zip(0..).zip(self.spans.own_times()).skip(1) {
            if node.calls > 0 || own != 0 {
                cost(Place::Span(number), node.calls, own);
            }
        }
    }
}

/// The frames of stacks, each once, in the order in which they were met.
#[derive(Clone, Debug, Default)]
struct DistinctFrames {
    frames: Vec<u32>,
    known: WordSet<u32>,
    visited: HashSet<RecordedStack>,
}

impl DistinctFrames {
    /// Adds the frames of a stack. The callers of a stack that was added before were added with it.
    fn add(&mut self, stack: RecordedStack, mut innermost: impl FnMut(RecordedStack) -> Option<(u32, RecordedStack)>) {
        let mut next = stack;
        while self.visited.insert(next) {
            let Some((frame, callers)) = innermost(next) else { return };
            if self.known.insert(frame) {
                self.frames.push(frame);
            }
            next = callers;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_stacks_are_walked_once() {
        const DEPTH: u32 = 10_000;
        let stack = |number| RecordedStack { process: 0, group: 0, place: Place::Span(number) };
        let mut steps = 0;
        let mut frames = DistinctFrames::default();
        for depth in 1..=DEPTH {
            frames.add(stack(depth), |of| {
                steps += 1;
                let Place::Span(depth) = of.place else { return None };
                (depth > 0).then(|| (depth % 7, stack(depth - 1)))
            });
        }
        assert_eq!((frames.frames.len(), steps), (7, DEPTH + 1));
    }
}
