//! Stacks of a process in a pickle: each frame and each stack once.

use std::collections::HashMap;
use std::io;

use stackweave_profile::{Frame, RecordedNames};
use stackweave_recording::ProcessRecording;

use crate::formats::pytorch::pickle::{Pickle, Shared};
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

pub(super) struct Stacks {
    process: ProcessRecording,
    names: RecordedNames,
    visible: VisibleFrames,
    /// By their numbers in the recording.
    known: HashMap<u32, Shared>,
    /// By the number of the frame in the recording, and the place among those that it stands for.
    frames: HashMap<(u32, usize), Shared>,
    /// The frames of a stack, and which of those that each stands for are seen.
    stack: Vec<(u32, u64)>,
}

impl Stacks {
    pub(super) fn new(source: &Source<'_>, process: &ProcessRecording) -> Self {
        let frames: Vec<u32> = process.dictionary().frames().map(|(number, _)| number).collect();
        Self {
            process: process.clone(),
            names: source.names(process, &frames),
            visible: VisibleFrames::new(process, source.view()),
            known: HashMap::new(),
            frames: HashMap::new(),
            stack: Vec::new(),
        }
    }

    /// What a frame is called.
    pub(super) fn name(&self, frame: u32) -> &str {
        self.names.of(frame).first().map_or("", |frame| &frame.name)
    }

    /// Writes a stack as a list, the innermost frame first.
    pub(super) fn write(&mut self, stack: u32, pickle: &mut Pickle<'_>) -> io::Result<()> {
        if let Some(known) = self.known.get(&stack) {
            pickle.refer(*known);
            return Ok(());
        }
        self.stack.clear();
        self.stack.extend(self.process.dictionary().frames_of(stack).map(|frame| (frame, 0)));
        let mut is_library = false;
        for (frame, seen) in self.stack.iter_mut().rev() {
            *seen = self.visible.visible_bits(*frame, self.names.of(*frame), &mut is_library);
        }
        pickle.begin_list();
        for (number, seen) in core::mem::take(&mut self.stack) {
            for (place, frame) in self.names.of(number).iter().enumerate().filter(|(place, _)| seen >> place & 1 == 1) {
                pickle.item()?;
                if let Some(known) = self.frames.get(&(number, place)) {
                    pickle.refer(*known);
                } else {
                    write_frame(frame, pickle);
                    self.frames.insert((number, place), pickle.share());
                }
            }
        }
        pickle.end_list();
        self.known.insert(stack, pickle.share());
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
