//! The functions of a recording's frames, named once for all trees of its process.

use std::sync::Arc;

use stackweave_recording::file::{Dictionary, NumberMap, RecordedFrame};

use crate::aggregate::function::{FrameIndex, Function, FunctionModule, FunctionTable};
use crate::aggregate::recorded_names::FrameNamer;
use crate::frame::Frame;
use crate::word_hash::WordMap;

/// The functions of frames, by their numbers in the recording. A frame gets them when it is first met.
#[derive(Debug)]
pub(crate) struct FrameTable<'a> {
    names: FrameNamer<'a>,
    /// Whether lines of a function are separate.
    lines: bool,
    chains: NumberMap<FrameFunctions>,
    indexes: Vec<FrameIndex>,
    modules: WordMap<u32, Arc<FunctionModule>>,
}

/// The functions of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameFunctions {
    start: u32,
    length: u32,
    /// Whether stacks begin inside of it: see [`Frame::is_boundary`].
    pub(crate) is_boundary: bool,
}

impl<'a> FrameTable<'a> {
    pub(crate) fn new(names: FrameNamer<'a>, lines: bool) -> Self {
        let (chains, indexes, modules) = Default::default();
        Self { names, lines, chains, indexes, modules }
    }

    pub(crate) fn dictionary(&self) -> &'a Dictionary {
        self.names.dictionary()
    }

    /// Returns the functions of a frame, which are added to `functions`: always the same table.
    pub(crate) fn chain(&mut self, number: u32, functions: &mut FunctionTable) -> FrameFunctions {
        if let Some(known) = self.chains.get(number) {
            return *known;
        }
        let chain = self.name(number, functions);
        self.chains.insert(number, chain);
        chain
    }

    /// Returns the frames of a chain, outermost first.
    pub(crate) fn frames(&self, chain: FrameFunctions) -> impl Iterator<Item = FrameIndex> {
        self.indexes[chain.start as usize..][..chain.length as usize].iter().copied()
    }

    #[expect(clippy::cast_possible_truncation, reason = "that many frames do not fit into memory")]
    fn name(&mut self, number: u32, functions: &mut FunctionTable) -> FrameFunctions {
        let module = match self.dictionary().frame(number) {
            Some(RecordedFrame::Native { module, .. }) => module.and_then(|module| self.module(module)),
            _ => None,
        };
        let (start, names) = (self.indexes.len(), self.names.of(number));
        for frame in names.iter().rev() {
            let function = functions.intern(Function::of_frame(frame, module.as_ref()));
            self.indexes.push(functions.intern_frame(function, frame.position.line.filter(|_| self.lines)));
        }
        let is_boundary = names.iter().any(Frame::is_boundary);
        FrameFunctions { start: start as u32, length: names.len() as u32, is_boundary }
    }

    fn module(&mut self, number: u32) -> Option<Arc<FunctionModule>> {
        let module = self.dictionary().module(number)?;
        Some(Arc::clone(self.modules.entry(number).or_insert_with(|| Arc::new(module.into()))))
    }
}
