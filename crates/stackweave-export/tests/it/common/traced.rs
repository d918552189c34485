//! Recordings like those of a tracer of calls.

use stackweave_core::{Call, CodeId, RawFrame, RawFrameKind};
use stackweave_recording::events;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, TapeTime, span};
use stackweave_testkit::random::Random;

/// A function, with the function and line that call it.
#[derive(Clone, Copy, Debug)]
pub struct Called(pub RawFrame, pub Option<(u32, u32)>);

impl Called {
    fn word(self) -> u64 {
        let call = match self.0.kind() {
            RawFrameKind::Label(label) => Call::to_label(label).unwrap(),
            RawFrameKind::Python { code, .. } => Call::to_code(code).unwrap(),
            other => panic!("{other:?} is never called"),
        };
        let caller = self.1.map(|(code, line)| (CodeId::new(code).unwrap(), line));
        // The tape has the offset of the line, and a code unit is two bytes.
        caller.map_or(call, |(code, line)| call.from(code, line / 2)).to_bits()
    }
}

/// The events of a tracer.
pub trait Traced {
    fn declare(&mut self);
    fn call(&mut self, at: TapeTime, called: Called);
    fn generator(&mut self, at: TapeTime, called: Called, object: u64);
    fn resume(&mut self, at: TapeTime, called: Called, object: u64);
    fn open(&mut self, at: TapeTime, called: Option<Called>, depth: u64);
    fn pause(&mut self, at: TapeTime);
    fn gc(&mut self, at: TapeTime, generation: u64);
    fn gc_end(&mut self, at: TapeTime, collected: u64);
    fn name(&mut self, at: TapeTime, name: &str, object: u64);
    fn demoted(&mut self, at: TapeTime, name: RawFrame, calls: u64);
    fn note(&mut self, at: TapeTime, name: &str, count: u64);
}

impl Traced for Tape {
    fn declare(&mut self) {
        for kind in [
            events::CALL,
            events::GENERATOR,
            events::RESUME,
            events::OPEN,
            events::YIELD,
            events::GC,
            events::GC_END,
            events::NAME,
            events::DEMOTED,
            events::TRACE_NOTE,
        ] {
            self.kind(&kind);
        }
    }

    fn call(&mut self, at: TapeTime, called: Called) {
        self.event(at, &events::CALL, &[called.word()]);
    }

    fn generator(&mut self, at: TapeTime, called: Called, object: u64) {
        self.event(at, &events::GENERATOR, &[called.word(), object]);
    }

    fn resume(&mut self, at: TapeTime, called: Called, object: u64) {
        self.event(at, &events::RESUME, &[called.word(), object]);
    }

    fn open(&mut self, at: TapeTime, called: Option<Called>, depth: u64) {
        self.event(at, &events::OPEN, &[called.map_or(0, Called::word), depth]);
    }

    fn pause(&mut self, at: TapeTime) {
        self.event(at, &events::YIELD, &[]);
    }

    fn gc(&mut self, at: TapeTime, generation: u64) {
        self.event(at, &events::GC, &[span("garbage collection").to_bits(), generation]);
    }

    fn gc_end(&mut self, at: TapeTime, collected: u64) {
        self.event(at, &events::GC_END, &[collected, 0]);
    }

    fn name(&mut self, at: TapeTime, name: &str, object: u64) {
        self.event(at, &events::NAME, &[span(name).to_bits(), object]);
    }

    fn demoted(&mut self, at: TapeTime, name: RawFrame, calls: u64) {
        self.event(at, &events::DEMOTED, &[name.to_bits(), calls, 40]);
    }

    fn note(&mut self, at: TapeTime, name: &str, count: u64) {
        self.event(at, &events::TRACE_NOTE, &[span(name).to_bits(), count]);
    }
}

/// The address of the coroutine in [`traced`].
pub const COROUTINE: u64 = 0x7f00_1230;

/// Records a program that was running when its trace began: `main` is open, runs a coroutine in parts that becomes a
/// task, and another one at the same address; `len` is a native function, and there is a garbage collection.
///
/// | | calls | self | total |
/// |---|---|---|---|
/// | main | 0 | 420 | 900 |
/// | main;work | 3 | 190 | 310 |
/// | main;work;builtins.len | 1 | 20 | 20 |
/// | main;work;garbage collection | 1 | 100 | 100 |
/// | main;other | 2 | 170 | 170 |
pub fn traced() -> Tape {
    traced_from(&ProcessStart { pid: 1, ..ProcessStart::default() })
}

/// Records the same as another process.
pub fn traced_from(start: &ProcessStart) -> Tape {
    let mut tape = Tape::started(start);
    tape.declare();
    tape.thread(1, 1, "main");
    let [main, work, other] =
        [("main", 1), ("work", 20), ("other", 40)].map(|(name, line)| tape.python(name, "/app/a.py", line));
    let (from_main, from_work) = (Some((main, 6)), Some((work, 24)));
    let at = |ticks| (1, ticks);
    tape.open(at(100), Some(Called(Tape::at(main, 0), None)), 0);
    tape.generator(at(150), Called(Tape::at(work, 0), from_main), COROUTINE);
    tape.call(at(160), Called(span("builtins.len"), from_work));
    tape.end(at(180));
    tape.pause(at(250));
    tape.name(at(260), "Task-1", COROUTINE);
    tape.resume(at(300), Called(Tape::at(work, 0), from_main), COROUTINE);
    tape.gc(at(310), 2);
    tape.gc_end(at(410), 7);
    tape.pause(at(480));
    tape.resume(at(500), Called(Tape::at(work, 0), from_main), COROUTINE);
    tape.end(at(530));
    tape.open(at(540), Some(Called(Tape::at(main, 0), None)), 0);
    tape.generator(at(600), Called(Tape::at(other, 0), from_main), COROUTINE);
    tape.pause(at(650));
    tape.resume(at(700), Called(Tape::at(other, 0), from_main), COROUTINE);
    tape.end(at(820));
    tape.end(at(1000));
    tape.demoted(at(1000), Tape::at(other, 0), 1000);
    tape.note(at(1000), "repairs", 12);
    tape
}

/// Records threads that call at random, with snapshots of open calls and with lost events.
pub fn random_traced(seed: u64, events: usize) -> Tape {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut tape = Tape::new();
    tape.declare();
    let mut frames: Vec<RawFrame> = (0..6).map(|number| span(&format!("module.native{number}"))).collect();
    for number in 0..12 {
        let function = tape.python(&format!("Class.method{number}"), &format!("/app/f{}.py", number % 3), number * 7);
        frames.push(Tape::at(function, 0));
    }
    let mut open: [Vec<(RawFrame, u64)>; 2] = [Vec::new(), Vec::new()];
    let mut ticks = 1;
    for (number, name) in [(1, "main"), (2, "worker")] {
        tape.thread(number, number, name);
    }
    for _ in 0..events {
        ticks += 1 + random.bits() % 50;
        let thread = random.below(2);
        let at = (u32::try_from(thread).unwrap() + 1, ticks);
        let frame = frames[random.below(frames.len())];
        let is_known = random.below(3) > 0;
        let called =
            Called(frame, is_known.then(|| (1 + u32::from(random.byte_below(12)), u32::from(random.byte_below(90)))));
        let object = 0x1000 + 16 * (random.bits() % 20);
        match random.below(20) {
            0 => {
                if random.below(2) == 0 {
                    tape.lose((at.0, ticks - 1));
                    for _ in 0..random.below(4) {
                        open[thread].pop();
                    }
                }
                for (depth, (frame, _)) in (0..).zip(&open[thread]) {
                    tape.open(at, Some(Called(*frame, None)), depth);
                }
                if open[thread].is_empty() {
                    tape.open(at, None, 0);
                }
            }
            1 => tape.name(at, "Task", object),
            2..11 if open[thread].len() < 30 => {
                match random.below(4) {
                    0 => tape.generator(at, called, object),
                    1 => tape.resume(at, called, object),
                    _ => tape.call(at, called),
                }
                open[thread].push((frame, object));
            }
            _ if open[thread].pop().is_some() => tape.end(at),
            _ => tape.instant(at, frame, &[]),
        }
    }
    tape
}
