//! The frames that all profiles share, by their index.

use std::io::{self, Write};

use stackweave_profile::{FunctionTable, Measure, RecordedCosts, RecordedNames, WordMap};

use super::write_text;
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

/// Functions, or their lines if lines are separate.
pub(super) struct SpeedscopeFrames {
    functions: FunctionTable,
    processes: Vec<ProcessFrameTable>,
}

struct ProcessFrameTable {
    names: RecordedNames,
    visible: VisibleFrames,
    /// The functions of each frame of the recording, innermost first.
    indices: WordMap<u32, Box<[usize]>>,
}

impl SpeedscopeFrames {
    /// Collects the frames of these costs.
    pub(super) fn of(source: &Source<'_>, costs: &RecordedCosts<'_>, measures: &[Measure]) -> Self {
        let mut functions = FunctionTable::default();
        let mut processes = Vec::new();
        for (process, numbers) in source.processes().iter().zip(costs.frames(measures)) {
            let names = source.names(process, &numbers);
            let mut visible = VisibleFrames::new(process, source.view());
            let mut indices = WordMap::default();
            for number in numbers {
                let frames = names.of(number);
                let functions_of = visible.functions(number, frames);
                let lines = frames.iter().map(|frame| frame.position.line.filter(|_| source.options().part.lines));
                let intern = |(function, line): (&stackweave_profile::Function, Option<u32>)| {
                    let function = functions.intern(function.clone());
                    functions.intern_frame(function, line).index()
                };
                indices.insert(number, functions_of.iter().zip(lines).map(intern).collect());
            }
            processes.push(ProcessFrameTable { names, visible, indices });
        }
        Self { functions, processes }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, frame) in self.functions.frames().iter().enumerate() {
            let function = self.functions.function(frame.function);
            out.write_all(if index == 0 { b"\n{\"name\":" } else { b",\n{\"name\":" })?;
            write_text(out, function.full_name())?;
            if let Some(file) = function.filename.as_ref().or(function.module_name()) {
                out.write_all(b",\"file\":")?;
                write_text(out, file)?;
            }
            if let Some(line) = frame.line.or(function.first_line) {
                write!(out, ",\"line\":{line}")?;
            }
            out.write_all(b"}")?;
        }
        Ok(())
    }

    /// Starts a stack of a process, which is built from its outermost frame.
    pub(super) fn path(&mut self, process: usize) -> FramePath<'_> {
        FramePath { frames: &mut self.processes[process], pushed: Vec::new(), indices: Vec::new(), popped: Vec::new() }
    }
}

/// A stack that grows and shrinks at its inner end.
pub(super) struct FramePath<'a> {
    frames: &'a mut ProcessFrameTable,
    /// For each frame that was pushed: how many indices there were before it, and whether a library called it.
    pushed: Vec<(usize, bool)>,
    indices: Vec<usize>,
    popped: Vec<usize>,
}

impl FramePath<'_> {
    /// Adds a frame, and returns its visible functions, outermost first.
    pub(super) fn push(&mut self, frame: u32) -> &[usize] {
        let ProcessFrameTable { names, visible, indices } = &mut *self.frames;
        let mut is_library = self.pushed.last().is_some_and(|(_, is_library)| *is_library);
        let visible_bits = visible.visible_bits(frame, names.of(frame), &mut is_library);
        let length = self.indices.len();
        let of_frame = indices.get(&frame).map(AsRef::as_ref).unwrap_or_default();
        let innermost_first = of_frame.iter().enumerate().filter(|(index, _)| visible_bits >> index & 1 == 1);
        self.indices.extend(innermost_first.rev().map(|(_, index)| *index));
        self.pushed.push((length, is_library));
        &self.indices[length..]
    }

    /// Removes the last frame, and returns its visible functions, innermost first.
    pub(super) fn pop(&mut self) -> &[usize] {
        let length = self.pushed.pop().map_or(0, |(length, _)| length);
        self.popped.clear();
        self.popped.extend(self.indices.drain(length..).rev());
        &self.popped
    }

    pub(super) fn clear(&mut self) {
        self.pushed.clear();
        self.indices.clear();
    }
}
