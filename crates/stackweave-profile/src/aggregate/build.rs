//! Builds profiles with names from costs by the numbers of a recording.

use std::borrow::Cow;
use std::sync::Arc;

use stackweave_recording::ProcessRecording;
use stackweave_recording::file::{Dictionary, RecordedFrame};

use crate::aggregate::call_tree::{NodeId, TreeBuilder};
use crate::aggregate::collector::GroupCosts;
use crate::aggregate::function::{FrameIndex, Function, FunctionModule, FunctionTable};
use crate::aggregate::measure::{DeviceMeasure, Measure};
use crate::aggregate::origin::CodeIdentity;
use crate::aggregate::profile::{Counts, Profile};
use crate::aggregate::recorded_names::RecordedNames;
use crate::aggregate::span_tree::SpanTree;
use crate::aggregate::stack_costs::{StackCost, StackCosts, StackKey};
use crate::frame::{Frame, FrameKind};
use crate::word_hash::{WordMap, WordSet};

impl GroupCosts {
    /// Returns the frames of a profile of these costs, by their numbers in the recording.
    pub(crate) fn frames(&self, counted: DeviceMeasure, dictionary: &Dictionary) -> Vec<u32> {
        let mut seen: WordSet<u32> = WordSet::default();
        let mut frames = Vec::new();
        let mut take = |frame: u32| {
            if seen.insert(frame) {
                frames.push(frame);
            }
        };
        let mut stacks: WordSet<u32> = WordSet::default();
        let costs = self.costs(counted).unwrap_or_default();
        for (key, _) in &costs {
            let mut next = if let StackKey::Stack(stack) = key { *stack } else { 0 };
            while stacks.insert(next) {
                let Some((callers, frame)) = dictionary.stack(next) else { break };
                take(frame);
                next = callers;
            }
        }
        let needs_spans =
            counted.measure.counts_calls() || costs.iter().any(|(key, _)| matches!(key, StackKey::Span(1..)));
        let nodes = if needs_spans { self.spans.nodes() } else { &[] };
        nodes.iter().skip(1).for_each(|node| take(node.frame));
        frames
    }

    /// Returns all costs, in the order of their keys; `None` if they are those of spans.
    pub(crate) fn costs(&self, DeviceMeasure { measure, device }: DeviceMeasure) -> Option<Vec<(StackKey, StackCost)>> {
        let costs = match measure {
            Measure::WallTime | Measure::Calls => return None,
            Measure::Samples => Some(&self.samples),
            _ => self.memory.iter().find(|known| known.device == device).and_then(|known| known.of(measure)),
        };
        Some(costs.map(StackCosts::sorted).unwrap_or_default())
    }

    /// Builds the profile of a measure.
    pub(crate) fn profile(
        &self,
        counted: DeviceMeasure,
        process: &ProcessRecording,
        names: &RecordedNames,
        lines: bool,
    ) -> Profile {
        let mut paths = Paths {
            dictionary: process.dictionary(),
            names,
            lines,
            functions: FunctionTable::default(),
            chains: WordMap::default(),
            modules: WordMap::default(),
            builder: TreeBuilder::default(),
            stacks: WordMap::default(),
            spans: WordMap::default(),
        };
        let measure = counted.measure;
        match self.costs(counted) {
            None => paths.add_spans(&self.spans, measure),
            Some(costs) => paths.add_costs(&costs, &self.spans, measure),
        }
        let (unfinished, unmatched_ends) = match measure {
            Measure::WallTime | Measure::Calls => (self.spans.counts.unfinished, self.spans.counts.unmatched_ends),
            _ => (0, 0),
        };
        let counts = Counts { events: self.events, unfinished, unmatched_ends, ..Counts::default() };
        Profile { measure, functions: paths.functions, tree: paths.builder.finish(), counts }
    }
}

/// The stacks and spans of a recording as nodes of a tree.
struct Paths<'a> {
    dictionary: &'a Dictionary,
    names: &'a RecordedNames,
    lines: bool,
    functions: FunctionTable,
    /// The functions of each frame of the recording, outermost first.
    chains: WordMap<u32, Box<[FrameIndex]>>,
    modules: WordMap<u32, Arc<FunctionModule>>,
    builder: TreeBuilder,
    stacks: WordMap<u32, NodeId>,
    spans: WordMap<u32, NodeId>,
}

impl Paths<'_> {
    fn add_spans(&mut self, spans: &SpanTree, measure: Measure) {
        let nodes = spans.nodes();
        let mut is_needed: Vec<bool> = nodes.iter().map(|node| node.calls > 0 || node.total > 0).collect();
        for (index, node) in nodes.iter().enumerate().skip(1).rev() {
            if is_needed[index] {
                is_needed[node.parent as usize] = true;
            }
        }
        let mut ids = vec![NodeId::ROOT; nodes.len()];
        for ((index, node), own) in nodes.iter().enumerate().zip(spans.self_times()).skip(1) {
            if is_needed[index] {
                ids[index] = self.descend(ids[node.parent as usize], node.frame, node.calls);
                let calls = || i64::try_from(node.calls).unwrap_or(i64::MAX);
                self.builder.add(ids[index], 0, if measure == Measure::Calls { calls() } else { own });
            }
        }
    }

    fn add_costs(&mut self, costs: &[(StackKey, StackCost)], spans: &SpanTree, measure: Measure) {
        for (key, cost) in costs {
            let node = match key {
                StackKey::Stack(stack) => self.stack(*stack),
                StackKey::Span(node) => self.span(*node, spans),
            };
            self.builder.add(node, cost.events, cost.value(measure));
        }
    }

    /// Returns the node of a stack, below those of its callers.
    fn stack(&mut self, stack: u32) -> NodeId {
        let mut path = Vec::new();
        let mut next = stack;
        let mut node = loop {
            if let Some(known) = self.stacks.get(&next) {
                break *known;
            }
            let Some((callers, frame)) = self.dictionary.stack(next) else { break NodeId::ROOT };
            path.push((next, frame));
            next = callers;
        };
        for (stack, frame) in path.into_iter().rev() {
            let is_boundary = self.names.of(frame).iter().any(Frame::is_boundary);
            node = if is_boundary { NodeId::ROOT } else { self.descend(node, frame, 0) };
            self.stacks.insert(stack, node);
        }
        node
    }

    /// Returns the node of a span in the tree of spans.
    fn span(&mut self, span: u32, spans: &SpanTree) -> NodeId {
        let mut path = Vec::new();
        let mut next = span;
        let mut node = loop {
            if next == 0 {
                break NodeId::ROOT;
            }
            if let Some(known) = self.spans.get(&next) {
                break *known;
            }
            path.push(next);
            next = spans.nodes()[next as usize].parent;
        };
        for span in path.into_iter().rev() {
            node = self.descend(node, spans.nodes()[span as usize].frame, 0);
            self.spans.insert(span, node);
        }
        node
    }

    /// Returns the innermost node of a frame's functions under `parent`, and adds the calls to all of these nodes.
    fn descend(&mut self, parent: NodeId, frame: u32, calls: u64) -> NodeId {
        if !self.chains.contains_key(&frame) {
            let chain = self.chain(frame);
            self.chains.insert(frame, chain);
        }
        let mut node = parent;
        for index in self.chains.get(&frame).into_iter().flatten() {
            node = self.builder.child(node, *index);
            self.builder.add(node, calls, 0);
        }
        node
    }

    fn chain(&mut self, number: u32) -> Box<[FrameIndex]> {
        let module = match self.dictionary.frame(number) {
            Some(RecordedFrame::Native { module, .. }) => module.and_then(|module| self.module(module)),
            _ => None,
        };
        let names = self.names;
        let intern = |frame: &Frame| {
            let function = self.functions.intern(Function::of_frame(frame, module.as_ref()));
            self.functions.intern_frame(function, frame.position.line.filter(|_| self.lines))
        };
        names.of(number).iter().rev().map(intern).collect()
    }

    fn module(&mut self, number: u32) -> Option<Arc<FunctionModule>> {
        let module = self.dictionary.module(number)?;
        Some(Arc::clone(self.modules.entry(number).or_insert_with(|| Arc::new(module.into()))))
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
            origin: CodeIdentity { kind: frame.kind, name, path: &path.unwrap_or_default() }.origin(),
        }
    }
}
