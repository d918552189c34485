//! Builds profiles with names from costs by the numbers of a recording.

use std::borrow::Cow;
use std::sync::Arc;

use stackweave_recording::ProcessRecording;
use stackweave_recording::file::{Dictionary, NumberMap};
use stackweave_symbolize::Symbolizer;

use crate::aggregate::collector::GroupCosts;
use crate::aggregate::frame_table::FrameTable;
use crate::aggregate::function::{Function, FunctionModule, FunctionTable};
use crate::aggregate::measure::{DeviceMeasure, Measure};
use crate::aggregate::origin::CodeIdentity;
use crate::aggregate::per_stack::{PerStack, StackSet};
use crate::aggregate::profile::{Profile, ProfileCounts};
use crate::aggregate::recorded_names::FrameNamer;
use crate::aggregate::span_tree::{SpanCounts, SpanTree};
use crate::aggregate::stack_costs::{StackCosts, StackKey};
use crate::aggregate::view::View;
use crate::aggregate::visible_tree::{PathStep, VisibleCaller, VisibleTree};
use crate::frame::{Frame, FrameKind};

impl GroupCosts {
    /// Adds the frames of a profile of these costs, by their numbers in the recording. `stacks` are those whose frames
    /// were added before.
    pub(crate) fn take_frames(
        &self,
        counted: DeviceMeasure,
        dictionary: &Dictionary,
        stacks: &mut StackSet,
        frames: &mut NumberMap<()>,
    ) {
        let costs = self.costs(counted);
        let keys = || costs.into_iter().flat_map(StackCosts::iter).map(|(key, _)| key);
        for key in keys() {
            let mut next = if let StackKey::Stack(stack) = key { stack } else { 0 };
            while let Some((index, (callers, frame))) = dictionary.stack_index(next).zip(dictionary.stack(next)) {
                if !stacks.insert(index) {
                    break;
                }
                frames.insert(frame, ());
                next = callers;
            }
        }
        let needs_spans = counted.measure.counts_calls() || keys().any(|key| matches!(key, StackKey::Span(1..)));
        let nodes = if needs_spans { self.spans.nodes() } else { &[] };
        for node in nodes.iter().skip(1) {
            frames.insert(node.frame, ());
        }
    }

    /// Returns the costs of stacks; `None` if there are none, and if the costs are those of spans.
    pub(crate) fn costs(&self, DeviceMeasure { measure, device }: DeviceMeasure) -> Option<&StackCosts> {
        match measure {
            Measure::WallTime | Measure::Calls => None,
            Measure::Samples => Some(&self.samples),
            _ => self.memory.iter().find(|known| known.device == device).and_then(|known| known.of(measure)),
        }
    }

    fn counts(&self, measure: Measure) -> ProfileCounts {
        let of_spans = if measure.counts_calls() { self.spans.counts } else { SpanCounts::default() };
        let SpanCounts { unfinished, unmatched_ends } = of_spans;
        ProfileCounts { events: self.events, unfinished, unmatched_ends, ..ProfileCounts::default() }
    }
}

/// Builds profiles of the costs of processes. Frames are named once for all profiles, and their functions are in one
/// table.
#[derive(Debug)]
pub(crate) struct ProfileBuilder<'a> {
    view: &'a View,
    /// By process.
    frames: Vec<FrameTable<'a>>,
    functions: FunctionTable,
}

impl<'a> ProfileBuilder<'a> {
    pub(crate) fn new(view: &'a View) -> Self {
        Self { view, frames: Vec::new(), functions: FunctionTable::default() }
    }

    /// Adds the next process, with the costs that profiles will be built of.
    pub(crate) fn add_process<'c>(
        &mut self,
        process: &'a ProcessRecording,
        costs: impl Iterator<Item = (&'c GroupCosts, DeviceMeasure)>,
        (symbolizer, lines): (Option<&Symbolizer>, bool),
    ) {
        let mut names = FrameNamer::new(process);
        if symbolizer.is_some() {
            let (mut stacks, mut frames) = (StackSet::default(), NumberMap::default());
            for (group, counted) in costs {
                group.take_frames(counted, process.dictionary(), &mut stacks, &mut frames);
            }
            names.resolve(frames.numbers(), symbolizer);
        }
        self.add_named(names, lines);
    }

    /// Adds the next process, whose frames have these names.
    pub(crate) fn add_named(&mut self, names: FrameNamer<'a>, lines: bool) {
        self.frames.push(FrameTable::new(names, lines));
    }

    /// Builds the profile of groups of costs together, each with the index of its process.
    pub(crate) fn profile(&mut self, groups: &[(usize, &GroupCosts)], counted: DeviceMeasure) -> Profile {
        let Self { view, frames, functions } = self;
        let mut profile = VisibleTree::build(view, counted.measure, &mut |tree| {
            for (process, group) in groups {
                let (stacks_known, spans_known) = Default::default();
                let frames = &mut frames[*process];
                Paths { frames, functions, tree, spans: &group.spans, stacks_known, spans_known }.add(group, counted);
            }
        });
        for (_, group) in groups {
            profile.counts.add(group.counts(counted.measure));
        }
        profile
    }
}

/// The stacks and spans of a group as paths of a tree.
struct Paths<'a, 't, 'v> {
    frames: &'a mut FrameTable<'t>,
    functions: &'a mut FunctionTable,
    tree: &'a mut VisibleTree<'v>,
    spans: &'a SpanTree,
    /// The visible callers of what stacks call, and of what spans call.
    stacks_known: PerStack,
    spans_known: PerStack,
}

impl Paths<'_, '_, '_> {
    fn add(&mut self, group: &GroupCosts, counted: DeviceMeasure) {
        if counted.measure.counts_calls() {
            self.add_spans(counted.measure);
        } else if let Some(costs) = group.costs(counted) {
            self.add_costs(costs, counted.measure);
        }
    }

    fn add_spans(&mut self, measure: Measure) {
        let nodes = self.spans.nodes();
        let mut is_needed: Vec<bool> = nodes.iter().map(|node| node.calls > 0 || node.total > 0).collect();
        for (index, node) in nodes.iter().enumerate().skip(1).rev() {
            if is_needed[index] {
                is_needed[node.parent as usize] = true;
            }
        }
        let mut callers = vec![VisibleCaller::NONE; nodes.len()];
        for ((index, node), own) in nodes.iter().enumerate().zip(self.spans.self_times()).skip(1) {
            if is_needed[index] {
                let step = self.descend(callers[node.parent as usize], node.frame, node.calls);
                let calls = || i64::try_from(node.calls).unwrap_or(i64::MAX);
                self.tree.add(step, 0, if measure == Measure::Calls { calls() } else { own });
                callers[index] = step.caller;
            }
        }
    }

    fn add_costs(&mut self, costs: &StackCosts, measure: Measure) {
        for (key, cost) in costs.iter() {
            let step = match key {
                StackKey::Stack(stack) => self.stack(stack),
                StackKey::Span(node) => self.span(node),
            };
            self.tree.add(step, cost.events, cost.value(measure));
        }
    }

    /// Returns the last step of a stack, after those of its callers.
    fn stack(&mut self, stack: u32) -> PathStep {
        let dictionary = self.frames.dictionary();
        let (mut path, mut next) = (Vec::new(), stack);
        let mut caller = VisibleCaller::NONE;
        while let Some((index, (callers, frame))) = dictionary.stack_index(next).zip(dictionary.stack(next)) {
            if let Some(known) = self.stacks_known.get(index).filter(|_| next != stack) {
                caller = VisibleCaller::from_bits(known);
                break;
            }
            path.push((index, frame));
            next = callers;
        }
        let mut step = PathStep::after(caller);
        for (index, frame) in path.into_iter().rev() {
            let is_boundary = self.frames.chain(frame, self.functions).is_boundary;
            step = if is_boundary { PathStep::after(VisibleCaller::NONE) } else { self.descend(step.caller, frame, 0) };
            self.stacks_known.set(index, step.caller.to_bits());
        }
        step
    }

    /// Returns the last step of a span in the tree of spans.
    fn span(&mut self, span: u32) -> PathStep {
        let (mut path, mut next) = (Vec::new(), span);
        let mut caller = VisibleCaller::NONE;
        while next != 0 {
            if let Some(known) = self.spans_known.get(next as usize).filter(|_| next != span) {
                caller = VisibleCaller::from_bits(known);
                break;
            }
            path.push(next);
            next = self.spans.nodes()[next as usize].parent;
        }
        let mut step = PathStep::after(caller);
        for span in path.into_iter().rev() {
            step = self.descend(step.caller, self.spans.nodes()[span as usize].frame, 0);
            self.spans_known.set(span as usize, step.caller.to_bits());
        }
        step
    }

    /// Descends to the functions of a frame, and adds the calls to all of them. Returns the step to the innermost.
    fn descend(&mut self, above: VisibleCaller, frame: u32, calls: u64) -> PathStep {
        let mut step = PathStep::after(above);
        let chain = self.frames.chain(frame, self.functions);
        for index in self.frames.frames(chain) {
            step = self.tree.descend(step.caller, index, self.functions);
            if calls > 0 {
                self.tree.add(step, calls, 0);
            }
        }
        step
    }
}

impl Function {
    /// Returns the function of a frame; native functions share their module.
    pub fn of_frame(frame: &Frame, module: Option<&Arc<FunctionModule>>) -> Self {
        let name = frame.qualname.as_deref().unwrap_or(&frame.name);
        let path = match frame.kind {
            FrameKind::Native => module.map(|module| module.path.to_string_lossy()),
            _ => frame.filename.as_deref().map(Cow::Borrowed),
        };
        Self {
            kind: frame.kind,
            name: Arc::clone(&frame.name),
            qualname: frame.qualname.clone(),
            filename: frame.filename.clone(),
            module: module.cloned(),
            first_line: frame.first_line,
            origin: CodeIdentity { kind: frame.kind, name, path: &path.unwrap_or_default(), is_own: frame.is_own }
                .origin(),
        }
    }
}
