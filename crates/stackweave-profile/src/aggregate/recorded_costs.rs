//! What stacks of recorded frames cost, before they have names: for what tells addresses apart.

use stackweave_recording::file::Dictionary;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::collector::{Collected, GroupCosts, Wanted};
use crate::aggregate::measure::{Counted, Measure};
use crate::aggregate::memory_costs::default_device;
use crate::aggregate::options::AggregateOptions;
use crate::aggregate::recordings::collect_all;
use crate::aggregate::span_tree::SpanTree;
use crate::aggregate::stack_costs::Place;
use crate::word_hash::WordSet;

/// What the events of processes cost, by the numbers of frames in their recordings.
#[derive(Debug)]
pub struct RecordedCosts<'a> {
    processes: &'a [ProcessRecording],
    collected: Vec<Collected>,
    device: i64,
}

/// What one stack cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedCost<'a> {
    /// The place of the process among those that were asked for.
    pub process: usize,
    /// The number of the thread in its process, if threads have groups of their own.
    pub thread: Option<u32>,
    /// The numbers of its frames in the recording of its process, innermost first.
    pub frames: &'a [u32],
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
        let mut frames = vec![Vec::new(); self.processes.len()];
        let mut known: Vec<WordSet<u32>> = vec![WordSet::default(); self.processes.len()];
        for measure in measures {
            self.visit(*measure, |cost| {
                let (frames, known) = (&mut frames[cost.process], &mut known[cost.process]);
                frames.extend(cost.frames.iter().filter(|frame| known.insert(**frame)));
            });
        }
        frames
    }

    /// What could not be read, for each process.
    pub fn missing(&self) -> impl Iterator<Item = &Missing> {
        self.collected.iter().map(|process| &process.missing)
    }

    /// Every stack that cost something.
    pub fn visit(&self, measure: Measure, mut cost: impl FnMut(RecordedCost<'_>)) {
        let mut frames = Vec::new();
        for (process, group) in self.groups() {
            let dictionary = self.processes[process].dictionary();
            group.visit(Counted { measure, device: self.device }, &mut |place, calls, own| {
                frames.clear();
                put_frames(place, dictionary, &group.spans, &mut frames);
                cost(RecordedCost { process, thread: group.thread, frames: &frames, calls, own });
            });
        }
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

/// The frames of a place, innermost first.
fn put_frames(place: Place, dictionary: &Dictionary, spans: &SpanTree, frames: &mut Vec<u32>) {
    match place {
        Place::Stack(stack) => frames.extend(dictionary.frames_of(stack)),
        Place::Span(mut number) => {
            while number != 0 {
                let node = &spans.nodes()[number as usize];
                frames.push(node.frame);
                number = node.parent;
            }
        }
    }
}
