//! Writes the stacks of a process to a pickle: each frame and each list of frames once.

use std::io;

use stackweave_core::EventKind;
use stackweave_profile::{Frame, RecordedNames, View, WordMap};
use stackweave_recording::ProcessRecording;

use crate::formats::pytorch::pickle::{MemoId, Pickle};
use crate::source::Source;
use crate::visible_stacks::{FrameFunction, VisibleStacks};

pub(super) struct StackWriter {
    names: RecordedNames,
    /// The stacks of the process's memory, without internal frames, and those of devices, with all frames.
    views: [WrittenStacks; 2],
    /// The index of the current view.
    view: usize,
    /// The written functions.
    functions: WordMap<FrameFunction, MemoId>,
}

/// The stacks of a view.
struct WrittenStacks {
    visible: VisibleStacks,
    /// The written ones, by their numbers in `visible`.
    written: WordMap<u32, MemoId>,
}

impl StackWriter {
    pub(super) fn new(source: &Source<'_>, process: &ProcessRecording) -> Self {
        let frames: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
        let of_process = source.options().view.clone().unwrap_or_default();
        let stacks =
            |view: &View| WrittenStacks { visible: VisibleStacks::new(process, view), written: WordMap::default() };
        Self {
            names: source.names(process, &frames),
            views: [&of_process, source.view()].map(stacks),
            view: 0,
            functions: WordMap::default(),
        }
    }

    /// Sets the device whose stacks are written next.
    pub(super) fn set_device(&mut self, number: i64) {
        self.view = usize::from(number != EventKind::OWN_DEVICE);
    }

    /// Returns the name of a frame.
    pub(super) fn name(&self, frame: u32) -> &str {
        self.names.of(frame).first().map_or("", |frame| &frame.name)
    }

    /// Writes a stack as a list, the innermost frame first.
    pub(super) fn write(&mut self, stack: u32, pickle: &mut Pickle<'_>) -> io::Result<()> {
        let WrittenStacks { visible, written } = &mut self.views[self.view];
        let number = visible.number(stack, &self.names);
        if let Some(known) = written.get(&number) {
            pickle.refer(*known);
            return Ok(());
        }
        pickle.begin_list();
        for function in visible.functions(number) {
            pickle.item()?;
            if let Some(known) = self.functions.get(&function) {
                pickle.refer(*known);
            } else {
                let (frame, index) = function;
                write_frame(&self.names.of(frame)[index as usize], pickle);
                self.functions.insert(function, pickle.memoize());
            }
        }
        pickle.end_list();
        written.insert(number, pickle.memoize());
        Ok(())
    }
}

fn write_frame(frame: &Frame, pickle: &mut Pickle<'_>) {
    pickle.begin_dictionary();
    pickle.text("name");
    pickle.text(frame.qualname.as_ref().unwrap_or(&frame.name));
    pickle.text("filename");
    pickle.text(frame.filename.as_deref().unwrap_or("??"));
    pickle.text("line");
    pickle.unsigned(frame.position.line.or(frame.first_line).unwrap_or(0).into());
    pickle.end_dictionary();
}
