//! Programs that nobody would write: random calls, generators, greenlets, spans, native functions, and events that are not
//! told. After each event that is told, what was recorded says what is open: exactly what is.

use stackweave_cpython::calls::{Entering, Leaving};
use stackweave_testkit::random::Random;

use crate::fake::{Frame, GENERATORS, LEFT_OUT, World, label_call};
use crate::rules::Limits;

/// A frame of the model, and the greenlets that there are: one runs.
struct Model {
    random: Random,
    world: World,
    running: Vec<Frame>,
    waiting: Vec<Vec<Frame>>,
    suspended: Vec<Frame>,
    next_address: u64,
    told: u64,
    /// Of 100 events so many are not told.
    missed: usize,
}

impl Model {
    /// Generators are always told of: one that went on elsewhere unseen can't be told from one that did not.
    fn is_told(&mut self, of: Frame) -> bool {
        let is_generator = (GENERATORS..LEFT_OUT).contains(&of.number());
        is_generator || self.random.below(100) >= self.missed
    }

    fn begin(&mut self) {
        let code = match self.random.below(10) {
            0 | 1 => GENERATORS + self.random.below(3) as u32,
            2 | 3 => LEFT_OUT + self.random.below(3) as u32,
            _ => 1 + self.random.below(9) as u32,
        };
        self.next_address += 64;
        let frame = Frame::new(self.next_address, code);
        self.enter(Entering::Call, frame);
    }

    fn enter(&mut self, entering: Entering, frame: Frame) {
        let frame = frame.called_by(self.running.last().copied());
        self.running.push(frame);
        if self.is_told(frame) {
            self.world.enter(entering, frame);
            self.compare(frame);
        }
    }

    fn leave(&mut self) {
        let Some(frame) = self.running.last().copied() else { return };
        let leaving = match self.random.below(4) {
            0 => Leaving::Raise,
            1 | 2 if (GENERATORS..LEFT_OUT).contains(&frame.number()) => Leaving::Yield,
            _ => Leaving::Return,
        };
        let is_told = self.is_told(frame);
        if is_told {
            self.world.leave(leaving, frame);
        }
        self.running.pop();
        if leaving == Leaving::Yield {
            self.suspended.push(frame);
        }
        if is_told {
            self.compare(frame);
        }
    }

    /// What is open in the recording are the functions that run, but for those that are left out.
    fn compare(&mut self, of: Frame) {
        if of.number() >= LEFT_OUT {
            return;
        }
        self.told += 1;
        let wanted: Vec<u32> =
            self.running.iter().map(|frame| frame.number()).filter(|code| *code < LEFT_OUT).collect();
        assert_eq!(self.world.replay().functions(), wanted);
    }

    fn switch(&mut self) {
        let other = if self.waiting.len() < 3 || self.random.below(2) == 0 {
            Vec::new()
        } else {
            let place = self.random.below(self.waiting.len());
            self.waiting.swap_remove(place)
        };
        self.waiting.push(std::mem::replace(&mut self.running, other));
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..40 => self.begin(),
            40..75 => self.leave(),
            75..82 => {
                if !self.suspended.is_empty() {
                    let place = self.random.below(self.suspended.len());
                    let frame = self.suspended.swap_remove(place);
                    self.enter(Entering::Resume, frame);
                }
            }
            82..85 => self.switch(),
            85..90 => {
                // As a span does it that is told of: the stack is brought up to date first.
                let innermost = self.running.last().copied();
                self.world.engine().be_at(innermost);
                self.world.begin_span(7);
            }
            90..95 => {
                let innermost = self.running.last().copied();
                self.world.engine().be_at(innermost);
                self.world.end_span();
            }
            95..98 => {
                if let Some(frame) = self.running.last().copied() {
                    self.world.engine().enter_native(label_call(9), frame);
                }
            }
            _ => {
                if let Some(frame) = self.running.last().copied() {
                    self.world.engine().leave_native(false, frame);
                }
            }
        }
    }
}

fn run(seed: u64, missed: usize) -> Model {
    let mut model = Model {
        random: Random::new(seed),
        world: World::new(Limits::NONE),
        running: Vec::new(),
        waiting: Vec::new(),
        suspended: Vec::new(),
        next_address: 0,
        told: 0,
        missed,
    };
    for _ in 0..400 {
        model.step();
    }
    model
}

#[test]
fn what_is_recorded_nests_and_is_what_runs() {
    for seed in 1..=200_u64 {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for missed in [0, 5, 40] {
            let model = std::panic::catch_unwind(|| run(seed, missed));
            let model = model.unwrap_or_else(|_| panic!("seed {seed}, {missed} of 100 events not told"));
            assert!(model.told > 20, "seed {seed}: {} events", model.told);
            model.world.thread.pause(model.world.pen(), u64::MAX >> 8);
            assert!(model.world.replay().open.is_empty(), "seed {seed}");
        }
    }
}
