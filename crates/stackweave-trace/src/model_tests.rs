//! Random programs: calls, generators, greenlets, spans, native functions, and events that are missing. After each
//! event that is observed, the recording has exactly the calls open that are open in the program.

use stackweave_cpython::calls::{Entering, Leaving};
use stackweave_testkit::random::Random;

use crate::fake_thread::{EXCLUDED, FakeFrame, FakeThread, GENERATORS, label_call};
use crate::limits::TraceLimits;

/// A model of a thread with its greenlets, of which one runs.
struct ThreadModel {
    random: Random,
    fake: FakeThread,
    running: Vec<FakeFrame>,
    waiting: Vec<Vec<FakeFrame>>,
    suspended: Vec<FakeFrame>,
    next_address: u64,
    observed: u64,
    /// The percentage of events that are missing.
    missed: usize,
}

impl ThreadModel {
    /// Returns whether an event is observed. Events of generators are never missing: one that was resumed elsewhere
    /// without an event can't be distinguished from one that was not.
    fn is_observed(&mut self, of: FakeFrame) -> bool {
        let is_generator = (GENERATORS..EXCLUDED).contains(&of.number());
        is_generator || self.random.below(100) >= self.missed
    }

    fn begin(&mut self) {
        let code = match self.random.below(10) {
            0 | 1 => GENERATORS + self.random.below(3) as u32,
            2 | 3 => EXCLUDED + self.random.below(3) as u32,
            _ => 1 + self.random.below(9) as u32,
        };
        self.next_address += 64;
        let frame = FakeFrame::new(self.next_address, code);
        self.enter(Entering::Call, frame);
    }

    fn enter(&mut self, entering: Entering, frame: FakeFrame) {
        let frame = frame.called_by(self.running.last().copied());
        self.running.push(frame);
        if self.is_observed(frame) {
            self.fake.enter(entering, frame);
            self.compare(frame);
        }
    }

    fn leave(&mut self) {
        let Some(frame) = self.running.last().copied() else { return };
        let leaving = match self.random.below(4) {
            0 => Leaving::Raise,
            1 | 2 if (GENERATORS..EXCLUDED).contains(&frame.number()) => Leaving::Yield,
            _ => Leaving::Return,
        };
        let is_observed = self.is_observed(frame);
        if is_observed {
            self.fake.leave(leaving, frame);
        }
        self.running.pop();
        if leaving == Leaving::Yield {
            self.suspended.push(frame);
        }
        if is_observed {
            self.compare(frame);
        }
    }

    /// Asserts that the open calls in the recording are the running functions, except for excluded ones.
    fn compare(&mut self, of: FakeFrame) {
        if of.number() >= EXCLUDED {
            return;
        }
        self.observed += 1;
        let wanted: Vec<u32> =
            self.running.iter().map(|frame| frame.number()).filter(|code| *code < EXCLUDED).collect();
        assert_eq!(self.fake.replay().functions(), wanted);
    }

    fn switch(&mut self) {
        let other = if self.waiting.len() < 3 || self.random.below(2) == 0 {
            Vec::new()
        } else {
            let index = self.random.below(self.waiting.len());
            self.waiting.swap_remove(index)
        };
        self.waiting.push(std::mem::replace(&mut self.running, other));
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..40 => self.begin(),
            40..75 => self.leave(),
            75..82 => {
                if !self.suspended.is_empty() {
                    let index = self.random.below(self.suspended.len());
                    let frame = self.suspended.swap_remove(index);
                    self.enter(Entering::Resume, frame);
                }
            }
            82..85 => self.switch(),
            85..90 => {
                // The stack is updated first, as for an observed span.
                let innermost = self.running.last().copied();
                self.fake.engine().align_to(innermost);
                self.fake.begin_span(7);
            }
            90..95 => {
                let innermost = self.running.last().copied();
                self.fake.engine().align_to(innermost);
                self.fake.end_span();
            }
            95..98 => {
                if let Some(frame) = self.running.last().copied() {
                    self.fake.engine().enter_native(label_call(9), frame);
                }
            }
            _ => {
                if let Some(frame) = self.running.last().copied() {
                    self.fake.engine().leave_native(false, frame);
                }
            }
        }
    }
}

fn run(seed: u64, missed: usize) -> ThreadModel {
    let mut model = ThreadModel {
        random: Random::new(seed),
        fake: FakeThread::new(TraceLimits::NONE),
        running: Vec::new(),
        waiting: Vec::new(),
        suspended: Vec::new(),
        next_address: 0,
        observed: 0,
        missed,
    };
    for _ in 0..400 {
        model.step();
    }
    model
}

#[test]
fn recorded_calls_nest_and_are_those_that_run() {
    for seed in 1..=200_u64 {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for missed in [0, 5, 40] {
            let model = std::panic::catch_unwind(|| run(seed, missed));
            let model = model.unwrap_or_else(|_| panic!("seed {seed}, {missed} of 100 events missing"));
            assert!(model.observed > 20, "seed {seed}: {} events", model.observed);
            model.fake.stack.pause(model.fake.writer(), u64::MAX >> 8);
            assert!(model.fake.replay().open.is_empty(), "seed {seed}");
        }
    }
}
