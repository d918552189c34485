//! Writes the stacks of a process to a pickle: each frame and each stack once.

use std::collections::HashMap;
use std::io;

use stackweave_profile::{Frame, RecordedNames};
use stackweave_recording::ProcessRecording;

use crate::formats::pytorch::pickle::{MemoId, Pickle};
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

pub(super) struct StackWriter {
    process: ProcessRecording,
    names: RecordedNames,
    visible: VisibleFrames,
    /// The written stacks, by their numbers in the recording.
    stacks: HashMap<u32, MemoId>,
    /// The written functions, by the number of their frame in the recording and their index in it.
    frames: HashMap<(u32, usize), MemoId>,
    /// The frames of the current stack, each with the bits of its visible functions.
    stack: Vec<(u32, u64)>,
}

impl StackWriter {
    pub(super) fn new(source: &Source<'_>, process: &ProcessRecording) -> Self {
        let frames: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
        Self {
            process: process.clone(),
            names: source.names(process, &frames),
            visible: VisibleFrames::new(process, source.view()),
            stacks: HashMap::new(),
            frames: HashMap::new(),
            stack: Vec::new(),
        }
    }

    /// Returns the name of a frame.
    pub(super) fn name(&self, frame: u32) -> &str {
        self.names.of(frame).first().map_or("", |frame| &frame.name)
    }

    /// Writes a stack as a list, the innermost frame first.
    pub(super) fn write(&mut self, stack: u32, pickle: &mut Pickle<'_>) -> io::Result<()> {
        if let Some(known) = self.stacks.get(&stack) {
            pickle.refer(*known);
            return Ok(());
        }
        self.stack.clear();
        self.stack.extend(self.process.dictionary().frames_of(stack).map(|frame| (frame, 0)));
        let mut is_library = false;
        for (frame, visible_bits) in self.stack.iter_mut().rev() {
            *visible_bits = self.visible.visible_bits(*frame, self.names.of(*frame), &mut is_library);
        }
        pickle.begin_list();
        for (number, visible_bits) in core::mem::take(&mut self.stack) {
            let functions = self.names.of(number).iter().enumerate();
            for (index, frame) in functions.filter(|(index, _)| visible_bits >> index & 1 == 1) {
                pickle.item()?;
                if let Some(known) = self.frames.get(&(number, index)) {
                    pickle.refer(*known);
                } else {
                    write_frame(frame, pickle);
                    self.frames.insert((number, index), pickle.memoize());
                }
            }
        }
        pickle.end_list();
        self.stacks.insert(stack, pickle.memoize());
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
