//! The costs of stacks of recorded frames, before frames are named, for exports that distinguish addresses.

use std::collections::HashSet;

use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::collector::{GroupCosts, MeasureSet, ProcessCosts};
use crate::aggregate::measure::{DeviceMeasure, Measure};
use crate::aggregate::memory_costs::default_device;
use crate::aggregate::options::AggregateOptions;
use crate::aggregate::recordings::collect_all;
use crate::aggregate::stack_costs::{StackCosts, StackKey};
use crate::word_hash::WordSet;

/// The costs of processes, by the numbers of frames in their recordings.
#[derive(Debug)]
pub struct RecordedCosts<'a> {
    processes: &'a [ProcessRecording],
    collected: Vec<ProcessCosts>,
    device: i64,
}

/// A stack with a cost, or the stack of the callers of one. Its frames are read one by one, since the stacks of deep
/// recursions share most of their frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordedStack {
    process: usize,
    /// The group of its spans; 0 for a recorded stack, which the groups of a process share.
    group: usize,
    key: StackKey,
}

/// The cost of one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedCost {
    /// The index of the process.
    pub process: usize,
    /// The number of the thread in its process, if threads are separate.
    pub thread: Option<u32>,
    /// The stack.
    pub stack: RecordedStack,
    /// As in [`Cost`](crate::Cost).
    pub calls: u64,
    /// As in [`Cost`](crate::Cost).
    pub self_cost: i64,
}

impl<'a> RecordedCosts<'a> {
    /// Reads the events of processes. Without a requested measure, all are counted except live memory, which needs
    /// another order of reading.
    pub fn collect(
        processes: &'a [ProcessRecording],
        options: &AggregateOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, ReadError> {
        let collected = collect_all(processes, options, MeasureSet::Requested, progress)?;
        let device = options.device.unwrap_or_else(|| default_device(&collected));
        Ok(Self { processes, collected, device })
    }

    /// Returns the measures with any costs.
    pub fn measures(&self) -> Vec<Measure> {
        let counted = |measure: Measure| DeviceMeasure { measure, device: self.device };
        let has = |measure: &Measure| self.groups().any(|(_, group)| group.has(counted(*measure)));
        Measure::ALL.into_iter().filter(has).collect()
    }

    /// Returns the numbers of the frames of all stacks with costs, by process, without duplicates.
    pub fn frames(&self, measures: &[Measure]) -> Vec<Vec<u32>> {
        let mut frames = vec![DistinctFrameNumbers::default(); self.processes.len()];
        for measure in measures {
            self.visit(*measure, |cost| frames[cost.process].add(cost.stack, |stack| self.innermost(stack)));
        }
        frames.into_iter().map(|of_process| of_process.frames).collect()
    }

    /// Returns what could not be read, for each process.
    pub fn missing(&self) -> impl Iterator<Item = &Missing> {
        self.collected.iter().map(|process| &process.missing)
    }

    /// Visits every stack with a cost.
    pub fn visit(&self, measure: Measure, mut cost: impl FnMut(RecordedCost)) {
        for (process, of) in self.collected.iter().enumerate() {
            for (number, group) in of.groups.iter().enumerate() {
                group.visit(DeviceMeasure { measure, device: self.device }, &mut |key, calls, self_cost| {
                    let group_number = if matches!(key, StackKey::Span(_)) { number } else { 0 };
                    let stack = RecordedStack { process, group: group_number, key };
                    cost(RecordedCost { process, thread: group.thread, stack, calls, self_cost });
                });
            }
        }
    }

    /// Returns the number of a stack's innermost frame in the recording of its process, and the stack of its callers;
    /// `None` if the stack has no frames.
    pub fn innermost(&self, stack: RecordedStack) -> Option<(u32, RecordedStack)> {
        let (frame, callers) = match stack.key {
            StackKey::Stack(number) => {
                let (callers, frame) = self.processes[stack.process].dictionary().stack(number)?;
                (frame, StackKey::Stack(callers))
            }
            StackKey::Span(0) => return None,
            StackKey::Span(number) => {
                let spans = &self.collected[stack.process].groups[stack.group].spans;
                let node = spans.nodes().get(number as usize)?;
                (node.frame, StackKey::Span(node.parent))
            }
        };
        Some((frame, RecordedStack { key: callers, ..stack }))
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
    pub(crate) fn has(&self, counted: DeviceMeasure) -> bool {
        let has_costs = || self.costs(counted).is_some_and(|costs| !costs.is_empty());
        if counted.measure.counts_calls() { self.has_spans } else { has_costs() }
    }

    fn visit(&self, counted: DeviceMeasure, cost: &mut dyn FnMut(StackKey, u64, i64)) {
        if !counted.measure.counts_calls() {
            for (key, of) in self.costs(counted).into_iter().flat_map(StackCosts::iter) {
                cost(key, of.events, of.value(counted.measure));
            }
            return;
        }
        for ((node, number), own) in self.spans.nodes().iter().zip(0..).zip(self.spans.self_times()).skip(1) {
            if node.calls > 0 || own != 0 {
                cost(StackKey::Span(number), node.calls, own);
            }
        }
    }
}

/// The frames of stacks without duplicates, in the order of their first use.
#[derive(Clone, Debug, Default)]
struct DistinctFrameNumbers {
    frames: Vec<u32>,
    known: WordSet<u32>,
    visited: HashSet<RecordedStack>,
}

impl DistinctFrameNumbers {
    /// Adds the frames of a stack. The callers of an earlier stack were added with it.
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
    fn nested_stacks_are_read_once() {
        const DEPTH: u32 = 10_000;
        let stack = |number| RecordedStack { process: 0, group: 0, key: StackKey::Span(number) };
        let mut steps = 0;
        let mut frames = DistinctFrameNumbers::default();
        for depth in 1..=DEPTH {
            frames.add(stack(depth), |of| {
                steps += 1;
                let StackKey::Span(depth) = of.key else { return None };
                (depth > 0).then(|| (depth % 7, stack(depth - 1)))
            });
        }
        assert_eq!((frames.frames.len(), steps), (7, DEPTH + 1));
    }
}
