//! Hand-made recordings of phases.
#![expect(
    missing_docs,
    missing_debug_implementations,
    clippy::new_without_default,
    reason = "names and types describe the events"
)]

use stackweave_core::{EventKind, RawFrame};
use stackweave_recording::events;
use stackweave_store::label;

use crate::{Tape, stack_word, with_bytes};

/// The phases of a process; a tick of its clock is a nanosecond.
pub struct PhaseTape {
    pub tape: Tape,
    pub thread: u32,
}

/// Returns the label of a function with a file.
pub fn code(name: &str) -> RawFrame {
    label(name, "model.py", 10).unwrap()
}

impl PhaseTape {
    pub fn new() -> Self {
        Self::on(Tape::new())
    }

    pub fn on(tape: Tape) -> Self {
        Self { tape, thread: 1 }
    }

    pub fn on_thread(&mut self, thread: u32) -> &mut Self {
        self.thread = thread;
        self
    }

    pub fn push(&mut self, ticks: u64, frame: RawFrame) -> &mut Self {
        self.tape.begin((self.thread, ticks), frame);
        self
    }

    pub fn push_code(&mut self, ticks: u64, frame: RawFrame, bytecode_count: u64, inline_depth: u64) -> &mut Self {
        self.event(ticks, &events::BEGIN_CODE, &[frame.to_bits(), bytecode_count, inline_depth])
    }

    pub fn push_with(&mut self, ticks: u64, frame: RawFrame, json: &str) -> &mut Self {
        self.event(ticks, &events::BEGIN_WITH, &with_bytes(&[frame.to_bits(), 0], json))
    }

    pub fn push_run(&mut self, ticks: u64, frame: RawFrame, json: &str) -> &mut Self {
        self.event(ticks, &events::BEGIN_RUN, &with_bytes(&[frame.to_bits()], json))
    }

    pub fn still_open(&mut self, ticks: u64, frame: RawFrame, depth: u64) -> &mut Self {
        self.event(ticks, &events::STILL_OPEN, &[frame.to_bits(), depth])
    }

    pub fn pop(&mut self, ticks: u64) -> &mut Self {
        self.tape.end((self.thread, ticks));
        self
    }

    pub fn pop_with(&mut self, ticks: u64, json: &str) -> &mut Self {
        self.event(ticks, &events::END_WITH, &with_bytes(&[], json))
    }

    pub fn fail(&mut self, ticks: u64, json: &str) -> &mut Self {
        self.event(ticks, &events::END_FAILED, &with_bytes(&[], json))
    }

    pub fn leave_open(&mut self, ticks: u64) -> &mut Self {
        self.event(ticks, &events::END_LEFT_OPEN, &[])
    }

    pub fn unmatched(&mut self, ticks: u64, frame: RawFrame, stack: &[RawFrame]) -> &mut Self {
        self.event(ticks, &events::UNMATCHED_POP, &[frame.to_bits(), stack_word(stack)])
    }

    fn event(&mut self, ticks: u64, kind: &EventKind, words: &[u64]) -> &mut Self {
        self.tape.event((self.thread, ticks), kind, words);
        self
    }
}
