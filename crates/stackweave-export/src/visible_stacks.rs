//! The stacks of a process without hidden frames. Stacks of the recording that differ only in hidden frames are one.

use stackweave_profile::{RecordedNames, View, WordMap};
use stackweave_recording::ProcessRecording;

use crate::visible_frames::VisibleFrames;

/// A function of a frame: the number of the frame in the recording, and the index in it.
pub(crate) type FrameFunction = (u32, u32);

/// A frame has a bit for each function.
const MAX_FUNCTIONS: u32 = u64::BITS;

pub(crate) struct VisibleStacks {
    process: ProcessRecording,
    visible: VisibleFrames,
    /// By their numbers in the recording.
    known: WordMap<u32, VisibleStack>,
    /// Each innermost function with the number of its callers.
    stacks: Vec<(u32, FrameFunction)>,
    numbers: WordMap<(u32, FrameFunction), u32>,
    /// Stacks of the recording that have no number yet, with their frames, innermost first.
    pending: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct VisibleStack {
    /// Its number; 0 if it has no visible frames.
    number: u32,
    /// The state of [`View::shows`] for the next frame.
    is_library: bool,
}

impl VisibleStacks {
    pub(crate) fn new(process: &ProcessRecording, view: &View) -> Self {
        let (known, stacks, numbers, pending) = Default::default();
        let visible = VisibleFrames::new(process, view);
        Self { process: process.clone(), visible, known, stacks, numbers, pending }
    }

    /// Returns the number of a stack of the recording; 0 if it has no visible frames. Each is converted once, starting
    /// from its known callers.
    pub(crate) fn number(&mut self, stack: u32, names: &RecordedNames) -> u32 {
        let mut visible = VisibleStack::default();
        let mut next = stack;
        while let Some((callers, frame)) = self.process.dictionary().stack(next) {
            if let Some(known) = self.known.get(&next) {
                visible = *known;
                break;
            }
            self.pending.push((next, frame));
            next = callers;
        }
        while let Some((stack, frame)) = self.pending.pop() {
            let bits = self.visible.visible_bits(frame, names.of(frame), &mut visible.is_library);
            for index in (0..MAX_FUNCTIONS).rev().filter(|index| bits >> index & 1 == 1) {
                visible.number = self.enter(visible.number, (frame, index));
            }
            self.known.insert(stack, visible);
        }
        visible.number
    }

    /// Returns the functions of a stack, innermost first.
    pub(crate) fn functions(&self, number: u32) -> impl Iterator<Item = FrameFunction> {
        let stack = |number: u32| Some(self.stacks[number.checked_sub(1)? as usize]);
        core::iter::successors(stack(number), move |(callers, _)| stack(*callers)).map(|(_, function)| function)
    }

    #[expect(clippy::cast_possible_truncation, reason = "that many stacks do not fit into memory")]
    fn enter(&mut self, callers: u32, function: FrameFunction) -> u32 {
        let stacks = &mut self.stacks;
        *self.numbers.entry((callers, function)).or_insert_with(|| {
            stacks.push((callers, function));
            stacks.len() as u32
        })
    }
}
